//! HTTP over the simulated network: between nodes, and between them and their clients.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Extension;
use axum::Router;
use axum::extract::ConnectInfo;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use quorate::peer::{Carrier, Delivered, Parcel, PeerError, path};
use turmoil::net::{TcpListener, TcpStream};

use crate::clock::simulated_micros;
use crate::workload::clients::{NoAnswer, Outside, Request};
use crate::workload::history::Moment;

pub const CLIENT_PORT: u16 = 7400;
pub const PEER_PORT: u16 = 7401;

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The name of a host, as others look it up.
pub fn host(place: usize) -> String {
    format!("n{}", place + 1)
}

/// Serves a router for as long as the host runs.
pub async fn serve(port: u16, router: Router) -> std::io::Result<()> {
    let listener = TcpListener::bind((IpAddr::from(Ipv4Addr::UNSPECIFIED), port)).await?;
    loop {
        let (stream, from) = listener.accept().await?;
        let service = TowerToHyperService::new(router.clone().layer(Extension(ConnectInfo::<SocketAddr>(from))));
        let mut server = hyper::server::conn::http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
        // A connection that breaks is the client's to notice.
        tokio::spawn(async move { server.serve_connection(TokioIo::new(stream), service).await.ok() });
    }
}

async fn connect<B>(address: &str) -> Option<SendRequest<B>>
where
    B: hyper::body::Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.ok()?.ok()?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection.map(|_| ()));
    Some(sender)
}

/// Carries between nodes, and keeps connections as the real one does.
pub struct SimulatedCarrier {
    snapshots_sent: Arc<AtomicU64>,
    idle: Arc<Mutex<HashMap<String, Vec<SendRequest<reqwest::Body>>>>>,
}

impl SimulatedCarrier {
    pub fn new(snapshots_sent: Arc<AtomicU64>) -> Self {
        Self { snapshots_sent, idle: Arc::default() }
    }
}

impl Carrier for SimulatedCarrier {
    fn post(&self, parcel: Parcel) -> BoxFuture<'static, Result<Delivered, PeerError>> {
        let (idle, snapshots_sent) = (self.idle.clone(), self.snapshots_sent.clone());
        let is_snapshot = parcel.path == path::SNAPSHOT;
        let Parcel { address, path: url, headers, body, timeout } = parcel;
        let no_answer = {
            let address = address.clone();
            move |reason: String| PeerError::NoAnswer { address: address.clone(), reason }
        };
        let timed_out = no_answer.clone();
        let answered = async move {
            let kept = || idle.lock().unwrap().get_mut(&address).and_then(Vec::pop);
            let mut sender = loop {
                match kept() {
                    Some(sender) if sender.is_ready() => break sender,
                    Some(_) => {}
                    None => {
                        let unreachable =
                            || PeerError::Unreachable { address: address.clone(), reason: "no connection".into() };
                        break connect(&address).await.ok_or_else(unreachable)?;
                    }
                }
            };
            let mut request = hyper::Request::post(url).header("host", &address).body(body).expect("a valid path");
            request.headers_mut().extend(headers);
            let broken = |error: hyper::Error| no_answer(error.to_string());
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(broken)?.to_bytes().to_vec();
            idle.lock().unwrap().entry(address).or_default().push(sender);
            if is_snapshot && status == 200 {
                snapshots_sent.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Delivered { status, body })
        };
        tokio::time::timeout(timeout, answered)
            .map(move |answered| answered.unwrap_or_else(|_| Err(timed_out("no answer in time".into()))))
            .boxed()
    }
}

/// The clients' way to the nodes, and their clock.
pub struct SimulatedOutside;

impl Outside for SimulatedOutside {
    fn now(&self) -> Moment {
        simulated_micros()
    }

    fn ask(&self, request: Request) -> BoxFuture<'static, Result<(u16, Vec<u8>), NoAnswer>> {
        async move {
            let address = format!("{}:{CLIENT_PORT}", host(request.node));
            let mut sender = connect::<Full<Bytes>>(&address).await.ok_or(NoAnswer::NoConnection)?;
            let response = send(&mut sender, &address, request).await.ok_or(NoAnswer::Unknown)?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(|_| NoAnswer::Unknown)?;
            Ok((status, body.to_bytes().to_vec()))
        }
        .boxed()
    }

    fn watch(&self, node: usize, path: String) -> BoxFuture<'static, Option<BoxStream<'static, Vec<u8>>>> {
        async move {
            let address = format!("{}:{CLIENT_PORT}", host(node));
            let mut sender = connect::<Full<Bytes>>(&address).await?;
            let request = Request { node, is_post: false, path, idempotency_key: None, body: serde_json::Value::Null };
            let response = send(&mut sender, &address, request).await.filter(|response| response.status() == 200)?;
            let chunks = response.into_body().into_data_stream();
            // The connection lasts for as long as its sender.
            let chunks = chunks.scan(sender, |_, chunk| std::future::ready(chunk.ok().map(|chunk| chunk.to_vec())));
            Some(chunks.boxed())
        }
        .boxed()
    }
}

async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    address: &str,
    request: Request,
) -> Option<hyper::Response<hyper::body::Incoming>> {
    let method = if request.is_post { "POST" } else { "GET" };
    let mut http = hyper::Request::builder().method(method).uri(request.path).header("host", address);
    if let Some(key) = request.idempotency_key {
        http = http.header("idempotency-key", key);
    }
    let body = if request.is_post { request.body.to_string() } else { String::new() };
    let http = http.header("content-type", "application/json").body(Full::from(body)).expect("a valid request");
    sender.send_request(http).await.ok()
}
