//! What all commands that use a cluster have in common: where it is, and what its answers mean for a script.

use std::path::PathBuf;
use std::time::Duration;

use super::exit::Failure;
use super::values::{parse_duration, parse_url};
use crate::client::{Client, ClientError};
use crate::config;

/// Where the cluster is, and how to talk to it.
#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    /// Nodes of the cluster; the one that answers is asked first from then on
    #[arg(long, env = "QUORATE_URL", value_name = "URL,…", value_delimiter = ',', value_parser = parse_url,
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

/// For commands that call nodes. A proxy from the environment is for the outside world, not for the nodes.
pub fn http_client(request_deadline: Duration) -> reqwest::Result<reqwest::Client> {
    let agent = concat!("quorate/", env!("CARGO_PKG_VERSION"));
    reqwest::Client::builder().no_proxy().user_agent(agent).timeout(request_deadline).build()
}
