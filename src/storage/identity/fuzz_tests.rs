//! Bytes that nobody wrote. See `codec::fuzz_tests`.

use super::*;
use crate::codec::fuzz_tests::{Written, try_decoder};

#[test]
fn an_identity_is_read_or_refused() {
    try_decoder("identity.bin", Written::InOneWay, |_: Record| ());
}
