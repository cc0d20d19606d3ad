//! What all commands that use a cluster have in common: where it is, and what its answers mean for a script.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{Exit, Failure};
use crate::client::{Client, ClientError};
use crate::config;
use crate::wire::ErrorCode;

/// Where the cluster is, and how to talk to it.
#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    /// Nodes of the cluster; the one that answers is asked first from then on
    #[arg(long, env = "QUORATE_URL", value_name = "URL,…", value_delimiter = ',', value_parser = super::parse_url,
          default_value = "http://127.0.0.1:7400")]
    url: Vec<String>,

    /// How long a request may take, with all its tries
    #[arg(long = "timeout", value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    request_deadline: Duration,

    /// File whose first line is the cluster's access token, if it asks for one; mode 600
    #[arg(long, env = "QUORATE_ACCESS_TOKEN_FILE", value_name = "FILE")]
    access_token_file: Option<PathBuf>,

    /// Send tokens to other machines without encryption
    #[arg(long, env = "QUORATE_ALLOW_INSECURE_HTTP", value_parser = clap::builder::BoolishValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    allow_insecure_http: bool,
}

impl ConnectArgs {
    /// A client for these nodes.
    pub fn client(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .urls(&self.url)
            .request_deadline(self.request_deadline)
            .allow_insecure_http(self.allow_insecure_http);
        if let Some(path) = &self.access_token_file {
            let tokens = config::access_tokens(path).map_err(Failure::usage)?;
            let token = tokens.into_iter().next();
            builder = builder.access_token(token.expect("a file without a token is an error"));
        }
        builder.build().map_err(advise)
    }
}

/// The library says what is wrong; here it is also known what to type.
pub fn advise(error: ClientError) -> Failure {
    let refuses_cleartext = matches!(&error, ClientError::Cleartext { .. });
    let mut failure = Failure::from(error);
    if refuses_cleartext {
        failure.error = failure.error.context("set --allow-insecure-http, if the network between is yours alone");
    }
    failure
}

/// What a failed request means for a script.
pub fn exit_for(error: &ClientError) -> Exit {
    match error {
        ClientError::Invalid(_) | ClientError::Cleartext { .. } => Exit::Usage,
        ClientError::Rejected(rejection) => {
            let not_allowed =
                [ErrorCode::AuthenticationRequired, ErrorCode::AuthenticationFailed, ErrorCode::Forbidden];
            if not_allowed.iter().any(|code| rejection.is(*code)) { Exit::NotAllowed } else { Exit::Unreachable }
        }
        _ => Exit::Unreachable,
    }
}

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// JSON, one object a line
    Json,
}

impl Output {
    /// For commands that report as they go: people are at terminals, programs aren't.
    pub fn or_as_fits_stdout(chosen: Option<Output>) -> Output {
        chosen.unwrap_or(if std::io::stdout().is_terminal() { Output::Text } else { Output::Json })
    }
}

/// Prints one answer: as JSON, or as the text made of it.
pub fn print<T: Serialize>(output: Output, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let line = match output {
        Output::Text => text(answer),
        Output::Json => serde_json::to_string(answer)?,
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// A duration as 500ms, 30s or 2m; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().map(Duration::from_secs);
    seconds.or_else(|_| humantime::parse_duration(text)).map_err(|error| error.to_string())
}

/// A duration for a lease: whole seconds within the limits.
pub fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse_duration(text)?;
    let fits = (Duration::from_secs(5)..=Duration::from_secs(300)).contains(&ttl) && ttl.subsec_nanos() == 0;
    if fits { Ok(ttl) } else { Err("write whole seconds from 5s to 300s".to_owned()) }
}

#[cfg(test)]
mod tests;
