//! How clients reach real nodes.

use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use crate::workload::history::{Moment, SECOND};
use crate::workload::outside::{NoAnswer, Outside, Request};

/// This machine's raw monotonic clock. Nothing sets it, and NTP doesn't change its rate.
pub fn now() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
    u64::try_from(time.tv_sec).unwrap() * SECOND + u64::try_from(time.tv_nsec).unwrap() / 1_000
}

/// Real HTTP, and this machine's clock.
pub struct RealOutside {
    urls: Vec<String>,
    pub http: reqwest::Client,
}

impl RealOutside {
    pub fn new(urls: Vec<String>) -> Self {
        let http = reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_millis(700)).build().unwrap();
        Self { urls, http }
    }
}

impl Outside for RealOutside {
    fn now(&self) -> Moment {
        now()
    }

    fn ask(&self, request: Request) -> BoxFuture<'static, Result<(u16, Vec<u8>), NoAnswer>> {
        let url = format!("{}{}", self.urls[request.node], request.path);
        let mut http = if request.is_post { self.http.post(url).json(&request.body) } else { self.http.get(url) };
        if let Some(key) = request.idempotency_key {
            http = http.header("Idempotency-Key", key);
        }
        async move {
            let response = http.send().await?;
            let status = response.status().as_u16();
            response.bytes().await.map(|body| (status, body.to_vec()))
        }
        .map(|answered| {
            answered.map_err(
                |error: reqwest::Error| {
                    if error.is_connect() { NoAnswer::NoConnection } else { NoAnswer::Unknown }
                },
            )
        })
        .boxed()
    }

    fn watch(&self, node: usize, path: String) -> BoxFuture<'static, Option<BoxStream<'static, Vec<u8>>>> {
        let http = self.http.get(format!("{}{path}", self.urls[node]));
        async move {
            let response = http.send().await.ok().filter(|response| response.status().is_success())?;
            let chunks = response.bytes_stream();
            Some(chunks.scan((), |(), chunk| ready(chunk.ok().map(|chunk| chunk.to_vec()))).boxed())
        }
        .boxed()
    }
}
