//! The file with the leader token between two commands. The token is never an argument, because every user of a machine
//! can read the arguments of a process.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use zeroize::Zeroizing;

use super::exit::Failure;

/// A token has 43 characters. A file that is much longer is the wrong file, and only its beginning is read.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Variable with the token, for `resign` without `--token-file`.
pub const TOKEN_VARIABLE: &str = "QUORATE_LEADER_TOKEN";

/// Reads a token from a file if there is a path, or else from the environment if the variable is set, or else from
/// stdin.
pub fn read_token(path: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let from: Box<dyn Read> = match path {
        Some(path) if path != Path::new("-") => Box::new(File::open(path).with_context(|| {
            format!("--token-file {} can't be opened; name a file that this user can read", path.display())
        })?),
        None if std::env::var_os(TOKEN_VARIABLE).is_some() => {
            text.push_str(&Zeroizing::new(std::env::var(TOKEN_VARIABLE).context(TOKEN_VARIABLE)?));
            Box::new(std::io::empty())
        }
        _ => Box::new(std::io::stdin()),
    };
    from.take(TOKEN_BYTES_MAX)
        .read_to_string(&mut text)
        .context("the token can't be read as text; check that it is the right file")?;
    let token = Zeroizing::new(text.trim().to_owned());
    if token.is_empty() {
        return Err(anyhow!(
            "there is no token; name a file with --token-file, set {TOKEN_VARIABLE}, or write the token to stdin"
        ));
    }
    Ok(token)
}

/// A file that only its owner can read. It appears with its whole content or not at all.
pub struct NewTokenFile {
    file: File,
    /// Where the file is until it is complete.
    beside: PathBuf,
    /// Where the file belongs.
    path: PathBuf,
}

impl NewTokenFile {
    /// Creates an empty file beside `path`.
    pub fn beside(path: &Path) -> Result<NewTokenFile, Failure> {
        let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(format!(".{}.new", std::process::id()));
        let beside = path.with_file_name(name);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let file = opened.with_context(|| {
            format!(
                "--token-file {} can't be written; name a file in a directory that this user can write to",
                path.display()
            )
        });
        Ok(NewTokenFile { file: file.map_err(Failure::usage)?, beside, path: path.to_owned() })
    }

    /// Writes the content, and moves the file to its place.
    pub fn keep(mut self, content: &str) -> std::io::Result<()> {
        self.file.write_all(content.as_bytes())?;
        self.file.write_all(b"\n")?;
        self.file.sync_all()?;
        std::fs::rename(&self.beside, &self.path)
    }
}

impl Drop for NewTokenFile {
    fn drop(&mut self) {
        // After `keep` this fails, because the file has been moved.
        let _ = std::fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests;
