//! Random bytes as headers of a peer request. See `codec::fuzz_tests`.

use axum::http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::peer::ClusterSecret;

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn headers_are_read_or_rejected(value: Vec<u8>) {
        let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(HeaderName::from_static(header::TO), value.clone())]);
        let number = number::<u64>(&headers, header::TO).ok();
        prop_assert_eq!(number, value.to_str().ok().and_then(|text| text.parse().ok()));
        let secret = ClusterSecret::new("correct horse battery".to_owned().into());
        prop_assert!(!secret.is_proven_by(Some(value.as_bytes())));
    }
}
