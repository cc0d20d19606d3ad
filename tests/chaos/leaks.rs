//! Searches everything that the nodes have printed and stored for secrets. There must be none.

use std::collections::HashSet;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The size in bytes of the pieces that are searched for. Any 15 bytes of a secret hold a whole piece.
const PIECE: usize = 8;

/// Finds pieces of secrets.
#[derive(Default)]
pub struct Search {
    pieces: HashSet<[u8; PIECE]>,
}

impl Search {
    /// Adds a secret, as these bytes.
    pub fn add(&mut self, secret: &[u8]) {
        let last = secret.len() - PIECE;
        for start in (0..last).step_by(PIECE).chain([last]) {
            self.pieces.insert(secret[start..start + PIECE].try_into().unwrap());
        }
    }

    /// Adds a leader token in three forms: as JSON has it, as bytes, and as hexadecimal digits.
    pub fn add_token(&mut self, token: &str) {
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add(token.as_bytes());
        self.add(&bytes);
        self.add(hex.as_bytes());
    }

    fn is_in(&self, content: &[u8]) -> bool {
        content.windows(PIECE).any(|window| self.pieces.contains::<[u8]>(window))
    }

    /// Searches a file, or all files below a folder. Returns the files with a secret, and those that can't be read.
    pub fn look_into(&self, place: &Path) -> Vec<String> {
        let inside = if place.is_dir() {
            std::fs::read_dir(place)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map(|entries| entries.iter().flat_map(|entry| self.look_into(&entry.path())).collect())
        } else {
            std::fs::read(place)
                .map(|content| if self.is_in(&content) { vec![place.display().to_string()] } else { Vec::new() })
        };
        inside.unwrap_or_else(|why| vec![format!("{}, which can't be read ({why})", place.display())])
    }
}

#[test]
fn a_secret_is_found_in_each_form_and_other_text_is_not() {
    let bytes: [u8; 32] = std::array::from_fn(|index| (index * 37 + 11) as u8);
    let token = URL_SAFE_NO_PAD.encode(bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut search = Search::default();
    search.add_token(&token);
    for form in [token.as_bytes(), &token.as_bytes()[5..20], &bytes, &bytes[17..], hex.as_bytes()] {
        assert!(search.is_in(&[b"before \xff", form, b"\0 after"].concat()), "{form:?}");
    }
    assert!(!search.is_in(b"no secret, only the word \"leader_token\""));
}

#[test]
fn a_place_that_cannot_be_read_is_not_clean() {
    let folder = tempfile::tempdir().unwrap();
    let mut search = Search::default();
    search.add(b"canary-secret");
    std::fs::write(folder.path().join("clean"), "nothing").unwrap();
    assert_eq!(search.look_into(folder.path()), Vec::<String>::new());
    std::fs::write(folder.path().join("log"), "the canary-secret").unwrap();
    std::os::unix::fs::symlink("/nowhere", folder.path().join("gone")).unwrap();
    assert_eq!(search.look_into(folder.path()).len(), 2);
}
