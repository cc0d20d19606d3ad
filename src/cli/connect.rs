//! Where the cluster is, for all commands that call nodes.

use std::path::PathBuf;
use std::time::Duration;

use super::exit::Failure;
use super::values::{parse_duration, parse_url};
use crate::client::{Client, ClientBuilder};
use crate::config;

/// Which nodes to call.
#[derive(Debug, clap::Args)]
pub struct UrlArgs {
    /// URLs of the nodes, separated by commas
    #[arg(long, env = "QUORATE_URL", value_name = "URL,…", value_delimiter = ',', value_parser = parse_url,
          default_value = ClientBuilder::DEFAULT_URL)]
    pub url: Vec<String>,
}

/// How to use a cluster as a client.
#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    #[command(flatten)]
    nodes: UrlArgs,

    /// How long a request may take. If a node fails, the request is retried at the next node within this time
    #[arg(long = "timeout", value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    request_deadline: Duration,

    /// File with an access token, for clusters that ask clients for one. If the file has several tokens, the first one
    /// is sent. Only the owner may have access to the file (mode 600) [default: none]
    #[arg(long, env = "QUORATE_ACCESS_TOKEN_FILE", value_name = "FILE")]
    access_token_file: Option<PathBuf>,

    /// Allow tokens to travel to other machines without encryption. A machine on the way could then read a token and
    /// use it, so set this only on a network that you trust
    #[arg(long, env = "QUORATE_ALLOW_INSECURE_HTTP", value_parser = clap::builder::BoolishValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    allow_insecure_http: bool,
}

impl ConnectArgs {
    /// A client of these nodes.
    pub fn client(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .urls(&self.nodes.url)
            .request_deadline(self.request_deadline)
            .allow_insecure_http(self.allow_insecure_http);
        if let Some(path) = &self.access_token_file {
            let tokens = config::access_tokens(path).map_err(Failure::usage)?;
            let token = tokens.into_iter().next();
            builder = builder.access_token(token.expect("a file without a token is an error"));
        }
        Ok(builder.build()?)
    }
}

/// An HTTP client for commands that need no more than plain requests. It ignores proxies from the environment, because
/// these are for other networks.
pub fn http_client(request_deadline: Duration) -> reqwest::Result<reqwest::Client> {
    let agent = concat!("quorate/", env!("CARGO_PKG_VERSION"));
    reqwest::Client::builder().no_proxy().user_agent(agent).timeout(request_deadline).build()
}
