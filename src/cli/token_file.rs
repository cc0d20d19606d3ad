//! Where a leader's token is kept between two commands: never in their arguments, which everybody can read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use zeroize::Zeroizing;

use super::exit::Failure;

/// A token is 43 characters; what is much longer is the wrong file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Where `resign` looks for the token if no file is named.
pub const TOKEN_VARIABLE: &str = "QUORATE_LEADER_TOKEN";

/// Reads a token from a file, the environment, or stdin.
pub fn read_token(path: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let from: Box<dyn Read> = match path {
        Some(path) if path != Path::new("-") => {
            Box::new(File::open(path).with_context(|| format!("--token-file {} can't be opened", path.display()))?)
        }
        None if std::env::var_os(TOKEN_VARIABLE).is_some() => {
            text.push_str(&Zeroizing::new(std::env::var(TOKEN_VARIABLE).context(TOKEN_VARIABLE)?));
            Box::new(std::io::empty())
        }
        _ => Box::new(std::io::stdin()),
    };
    from.take(TOKEN_BYTES_MAX).read_to_string(&mut text).context("the token can't be read")?;
    let token = Zeroizing::new(text.trim().to_owned());
    if token.is_empty() {
        return Err(anyhow!("there is no token: name a file with --token-file, set {TOKEN_VARIABLE}, or use stdin"));
    }
    Ok(token)
}

/// A file that only its owner can read, and that appears with its whole content or not at all.
pub struct NewTokenFile {
    file: File,
    beside: PathBuf,
    path: PathBuf,
}

impl NewTokenFile {
    /// An empty file beside `path`.
    pub fn beside(path: &Path) -> Result<NewTokenFile, Failure> {
        let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(format!(".{}.new", std::process::id()));
        let beside = path.with_file_name(name);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let file = opened.with_context(|| format!("--token-file {} can't be written", path.display()));
        Ok(NewTokenFile { file: file.map_err(Failure::usage)?, beside, path: path.to_owned() })
    }

    /// Puts it in its place, with this content.
    pub fn keep(mut self, content: &str) -> std::io::Result<()> {
        self.file.write_all(content.as_bytes())?;
        self.file.write_all(b"\n")?;
        self.file.sync_all()?;
        std::fs::rename(&self.beside, &self.path)
    }
}

impl Drop for NewTokenFile {
    fn drop(&mut self) {
        // After `keep` it isn't there any more.
        let _ = std::fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests;
