use proptest::prelude::*;

use super::*;

#[test]
fn a_frame_is_read_back() {
    let value = ("room".to_owned(), 7_u64, Some(vec![1_u8, 2, 3]));
    assert_eq!(decode::<(String, u64, Option<Vec<u8>>)>(&encode(&value).unwrap()).unwrap(), value);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = encode(&("some text", 42_u64)).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode::<(String, u64)>(&damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn a_damaged_length_is_distinguished_from_a_frame_that_was_cut_off() {
    let mut bytes = encode(&"text").unwrap();
    bytes[3] ^= 0x40;
    assert!(matches!(decode::<String>(&bytes), Err(CodecError::Damaged("length"))));
    let cut = &encode(&"text").unwrap()[..12];
    assert!(
        matches!(decode::<String>(cut), Err(CodecError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof)
    );
}

#[test]
fn a_frame_in_a_later_format_is_newer_unless_it_is_damaged() {
    let mut bytes = encode(&1_u8).unwrap();
    for format in [0, 2, 255] {
        bytes[0] = format;
        assert!(matches!(decode::<u8>(&bytes), Err(CodecError::Damaged("length"))), "{format}");
        let crc = crc32fast::hash(&bytes[..5]);
        bytes[5..9].copy_from_slice(&crc.to_be_bytes());
        match decode::<u8>(&bytes) {
            Err(CodecError::Newer { found, read: FORMAT }) if found == format && format > FORMAT => {}
            Err(CodecError::Malformed(_)) if format < FORMAT => {}
            other => panic!("{format}: {other:?}"),
        }
    }
}

#[test]
fn an_error_for_a_newer_format_keeps_its_kind_and_its_text() {
    let error = io::Error::from(check_format(3, 1).unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    let text = "a newer version of quorate wrote it in format 3, but this version reads only format 1";
    assert_eq!(error.to_string(), text);
    assert!(text.starts_with(NEWER));
}

#[test]
fn bytes_after_the_frame_are_an_error() {
    let mut bytes = encode(&1_u8).unwrap();
    bytes.push(0);
    assert!(matches!(decode::<u8>(&bytes), Err(CodecError::Length)));
}

proptest! {
    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode::<crate::domain::Command>(&bytes);
    }
}
