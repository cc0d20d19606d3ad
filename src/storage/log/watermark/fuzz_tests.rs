//! Damaged and random bytes for the decoder. See `codec::fuzz_tests`.

use super::*;
use crate::codec::fuzz_tests::{Written, try_decoder};

#[test]
fn a_damaged_watermark_is_an_error_and_no_panic() {
    try_decoder("watermark.bin", Written::InOneWay, |_: (u8, Watermark)| ());
}
