//! Bytes that nobody wrote, on the peer listener. See `codec::fuzz_tests`.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn headers_are_read_or_refused(value: Vec<u8>) {
        let Ok(value) = axum::http::HeaderValue::from_bytes(&value) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(axum::http::HeaderName::from_static(header::TO), value.clone())]);
        let number = number::<u64>(&headers, header::TO).ok();
        prop_assert_eq!(number, value.to_str().ok().and_then(|text| text.parse().ok()));
        let secret = ClusterSecret::new("correct horse battery".to_owned().into());
        prop_assert!(!secret.is_proven_by(Some(value.as_bytes())));
    }
}
