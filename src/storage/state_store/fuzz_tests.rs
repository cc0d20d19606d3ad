//! Damaged and random bytes for the decoder. See `codec::fuzz_tests`.

use super::*;
use crate::codec::fuzz_tests::{bounded, golden, payload_of, sealed, try_on};

#[test]
fn a_damaged_lease_database_is_never_used() {
    let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
    let lease = golden("lease.bin");
    assert!(codec::decode::<Lease>(&lease).is_ok());
    let meta = golden("state_meta.bin");
    let is_used = |records: &[(&[u8], &[u8])]| {
        db.clear().unwrap();
        for (key, value) in records {
            db.insert(key, *value).unwrap();
        }
        let bytes = records.iter().map(|(key, value)| key.len() + value.len()).sum();
        // A database is used only if its digest is right, and no random damage passes that check.
        bounded(bytes, || matches!(read(&db), Ok(Some(_))))
    };
    let key = b"lnightly-report".as_slice();
    assert!(!is_used(&[(b"m", &meta), (key, &lease)]), "the two golden records are from different states");
    try_on(vec![payload_of(&lease).to_vec()], |payload| {
        assert!(!is_used(&[(b"m", &meta), (key, &sealed(payload))]));
    });
    try_on(vec![payload_of(&meta).to_vec()], |payload| {
        assert!(!is_used(&[(b"m", &sealed(payload)), (key, &lease)]));
    });
    try_on(vec![key.to_vec(), b"m".to_vec(), b"l\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()], |key| {
        if key != b"m" {
            assert!(!is_used(&[(b"m", &meta), (key, &lease)]));
        }
    });
}
