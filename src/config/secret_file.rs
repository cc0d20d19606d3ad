//! Secrets come from files. A flag would show in the list of processes, and a variable in the settings of a container.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::error::ConfigError;

/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// Enough for about ten thousand tokens. A larger file is the wrong file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The secret that all nodes share: the whole file without the white space around it.
pub fn cluster_secret(path: &Path) -> Result<SecretString, ConfigError> {
    const FLAG: &str = "--cluster-secret-file";
    let text = read_private(FLAG, path)?;
    let secret = text.trim();
    if secret.len() < SECRET_BYTES_MIN {
        let problem = format!("{} contains fewer than {SECRET_BYTES_MIN} bytes", path.display());
        return Err(ConfigError::new(FLAG, problem, "make a secret with `openssl rand -base64 32`"));
    }
    Ok(SecretString::from(secret))
}

/// The access tokens, one per line. Empty lines and lines that start with `#` are skipped.
pub fn access_tokens(path: &Path) -> Result<Vec<SecretString>, ConfigError> {
    const FLAG: &str = "--access-token-file";
    let text = read_private(FLAG, path)?;
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let token = line.trim();
        if token.is_empty() || token.starts_with('#') {
            continue;
        }
        // A token must fit into a header.
        if token.len() < SECRET_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem = format!("line {} of {} is not a valid token", index + 1, path.display());
            let fix =
                "write at least 16 visible ASCII characters without spaces; `openssl rand -base64 32` makes a token";
            return Err(ConfigError::new(FLAG, problem, fix));
        }
        tokens.push(SecretString::from(token));
    }
    if tokens.is_empty() {
        // If this meant "no token is needed", an emptied file would open the service to everybody.
        let problem = format!("{} contains no token", path.display());
        return Err(ConfigError::new(
            FLAG,
            problem,
            "write one token per line, or leave out the flag if clients need no token",
        ));
    }
    Ok(tokens)
}

fn read_private(flag: &'static str, path: &Path) -> Result<Zeroizing<String>, ConfigError> {
    let unreadable = |error: std::io::Error| {
        let problem = format!("{} can't be read ({error})", path.display());
        ConfigError::new(flag, problem, "name a text file that this user can read")
    };
    let file = File::open(path).map_err(unreadable)?;
    // The mode is that of the open file, not of the path. So the file that is checked is the file that is read.
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let problem = format!("other users can access {} (mode {mode:03o})", path.display());
        return Err(ConfigError::new(flag, problem, format!("run `chmod 600 {}`", path.display())));
    }
    if metadata.len() > FILE_BYTES_MAX {
        let problem = format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display());
        return Err(ConfigError::new(flag, problem, "name the file that holds the secret"));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}
