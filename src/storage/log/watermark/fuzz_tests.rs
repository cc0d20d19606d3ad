//! Bytes that nobody wrote. See `codec::fuzz_tests`.

use super::*;
use crate::codec::fuzz_tests::{Written, try_decoder};

#[test]
fn a_watermark_is_read_or_refused() {
    try_decoder("watermark.bin", Written::InOneWay, |_: Watermark| ());
}
