//! Finds pieces of secrets in whatever bytes it is given.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The shortest piece of a secret that is searched for.
pub const PIECE: usize = 8;

/// Knows secrets, and finds pieces of them. Any 16 bytes of a secret contain one of its pieces.
#[derive(Default)]
pub struct Scanner {
    /// The pieces that begin with these bytes, each with the name of its secret.
    pieces: HashMap<[u8; PIECE], Vec<(Vec<u8>, String)>>,
    /// Whether any piece begins with these two bytes. Most positions in a text need no further look.
    beginnings: Vec<bool>,
}

impl Scanner {
    /// Searches for a secret exactly as it is written here, in pieces of `length` bytes.
    pub fn add(&mut self, name: &str, secret: &[u8], length: usize) {
        assert!(secret.len() >= length && length >= PIECE, "{name}");
        self.beginnings.resize(1 << 16, false);
        for start in (0..=secret.len() - length).step_by(PIECE).chain([secret.len() - length]) {
            let piece = &secret[start..start + length];
            self.beginnings[usize::from(u16::from_be_bytes([piece[0], piece[1]]))] = true;
            let key = piece[..PIECE].try_into().unwrap();
            self.pieces.entry(key).or_default().push((piece.to_vec(), name.to_owned()));
        }
    }

    /// Searches for a secret of random letters and digits.
    pub fn add_text(&mut self, name: &str, secret: &str) {
        self.add(name, secret.as_bytes(), PIECE);
    }

    /// Searches for a leader token in four forms: as it is sent, as bytes, in hex, and as a printed list of numbers.
    pub fn add_token(&mut self, name: &str, token: &str) {
        self.add_text(name, token);
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        self.add(name, &bytes, PIECE);
        self.add(name, hex(&bytes).as_bytes(), 2 * PIECE);
        let list = format!("{bytes:?}");
        for start in (0..list.len() - 40).filter(|start| list.as_bytes()[*start] == b' ') {
            self.add(name, &list.as_bytes()[start..start + 40], 40);
        }
    }

    /// The names of the secrets that are in `text`.
    pub fn found_in(&self, text: &[u8]) -> Vec<&str> {
        let mut found = Vec::new();
        for (at, window) in text.windows(PIECE).enumerate() {
            if !self.beginnings[usize::from(u16::from_be_bytes([window[0], window[1]]))] {
                continue;
            }
            let Some(candidates) = self.pieces.get(window) else { continue };
            found.extend(candidates.iter().filter(|(piece, _)| text[at..].starts_with(piece)).map(|(_, name)| &**name));
        }
        found
    }

    #[track_caller]
    pub fn finds_nothing_in(&self, place: &str, text: &[u8]) {
        let found = self.found_in(text);
        assert!(found.is_empty(), "{place} contains {found:?}");
    }

    /// Checks every file below a folder, and the file names. Returns the number of bytes in the files.
    pub fn finds_nothing_below(&self, folder: &Path) -> usize {
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            self.finds_nothing_in("a file name", path.as_os_str().as_encoded_bytes());
            if path.is_dir() {
                bytes += self.finds_nothing_below(&path);
            } else if let Ok(content) = std::fs::read(&path) {
                // A file that is gone by now was renamed, and is read under its new name.
                self.finds_nothing_in(&path.display().to_string(), &content);
                bytes += content.len();
            }
        }
        bytes
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_scanner_finds_every_form_of_a_secret_and_nothing_else() {
    let mut scanner = Scanner::default();
    let bytes: [u8; 32] = std::array::from_fn(|index| (index * 37 + 11) as u8);
    let token = URL_SAFE_NO_PAD.encode(bytes);
    scanner.add_token("token", &token);
    scanner.add_text("key", "Qm4Zt8Kx1Vb6Nw3Rj9Pc5Hy2");
    let around = |piece: &[u8]| [b"before \xff", piece, b"\0 after"].concat();
    for length in [16, 20, 43] {
        for start in 0..=token.len() - length {
            let text = around(&token.as_bytes()[start..start + length]);
            assert!(!scanner.found_in(&text).is_empty(), "{length} characters from position {start} are not found");
        }
    }
    for (name, form) in [
        ("token", bytes.to_vec()),
        ("token", bytes[..16].to_vec()),
        ("token", bytes[16..].to_vec()),
        ("token", hex(&bytes).into_bytes()),
        ("token", format!("SecretHash({bytes:?})").into_bytes()),
        ("token", token[..8].into()),
        ("key", b"idempotency-key: Qm4Zt8Kx1Vb6Nw3Rj9Pc5Hy2".to_vec()),
        ("key", b"Qm4Zt8Kx".to_vec()),
        ("key", b"9Pc5Hy2 after Zt8Kx1Vb6Nw3Rj9P".to_vec()),
    ] {
        assert_eq!(scanner.found_in(&around(&form)).first(), Some(&name), "{form:?}");
    }
    assert_eq!(scanner.found_in(b"nothing of it, nor \"Qm4Zt8K\" and \"leader_token\""), Vec::<&str>::new());
}
