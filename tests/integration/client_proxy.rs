//! A proxy in front of a node, which fails as a test wants.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

/// What happens to a request.
#[derive(Clone)]
pub enum Fault {
    /// The request is forwarded, and so is its answer.
    Pass,
    /// The request is forwarded, and its answer is cut off in the middle.
    CutAnswer,
    /// The request is forwarded after this time.
    Delay(Duration),
    /// The request is not forwarded. This status and body are the answer.
    Answer(u16, &'static str),
}

type Decide = Box<dyn Fn(&str, usize) -> Fault + Send + Sync>;

/// Forwards requests to a node. A rule chooses the fault of each by its path and by the number of requests before it.
pub struct Proxy {
    pub url: String,
    state: Arc<Forwarding>,
}

struct Forwarding {
    node: String,
    client: reqwest::Client,
    decide: Mutex<Decide>,
    seen: AtomicUsize,
}

impl Proxy {
    pub async fn start(node: String, decide: impl Fn(&str, usize) -> Fault + Send + Sync + 'static) -> Proxy {
        let client = crate::harness::http();
        let state =
            Arc::new(Forwarding { node, client, decide: Mutex::new(Box::new(decide)), seen: AtomicUsize::new(0) });
        let app = axum::Router::new().fallback(forward).with_state(state.clone());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let server = axum_server::from_tcp(listener).unwrap().serve(app.into_make_service());
        tokio::spawn(server);
        Proxy { url: format!("http://{address}"), state }
    }

    /// Sets another rule, and counts the requests from 0 again.
    pub fn set(&self, decide: impl Fn(&str, usize) -> Fault + Send + Sync + 'static) {
        *self.state.decide.lock().unwrap() = Box::new(decide);
        self.state.seen.store(0, Ordering::Relaxed);
    }

    pub fn requests(&self) -> usize {
        self.state.seen.load(Ordering::Relaxed)
    }
}

async fn forward(
    State(state): State<Arc<Forwarding>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let count = state.seen.fetch_add(1, Ordering::Relaxed);
    let fault = (state.decide.lock().unwrap())(uri.path(), count);
    if let Fault::Answer(status, body) = fault {
        return (StatusCode::from_u16(status).unwrap(), body).into_response();
    }
    if let Fault::Delay(delay) = fault {
        tokio::time::sleep(delay).await;
    }
    let mut request = state.client.request(method, format!("{}{uri}", state.node)).body(body);
    for name in ["content-type", "idempotency-key"] {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    let Ok(answer) = request.send().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let (status, body) = (answer.status(), answer.bytes().await.unwrap());
    if matches!(fault, Fault::CutAnswer) {
        let broken: Vec<Result<Bytes, std::io::Error>> =
            vec![Ok(body.slice(..body.len() / 2)), Err(std::io::Error::other("cut"))];
        return (status, Body::from_stream(futures::stream::iter(broken))).into_response();
    }
    (status, body).into_response()
}
