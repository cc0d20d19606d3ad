//! Requests that end before they reach the service: malformed ones, rejected ones, and unknown routes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::connect_info::MockConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::get;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::context::HandlerContext;
use super::openapi::document;
use super::settings::HttpSettings;
use super::{build_router, router};
use crate::clock::SystemClock;
use crate::consensus::{self, Consensus, ConsensusSettings, Founding, Parts};
use crate::peer::{HttpCarrier, Transport};
use crate::raft_types::Node;
use crate::random::SystemRandom;
use crate::service::{RoomService, ServiceSettings};
use crate::storage::{self, StorageConfig};

const ROOM: &str = "/elections/nightly-report";
const SECRET: &str = "mJ9r1cQ5bYb6m3lVgq0w3l2f9Jc0a1s5d8h7k4n2x6E";

/// The service of a node that waits for a cluster. It answers every request at once, as unavailable.
fn service() -> RoomService {
    static SERVICE: OnceLock<RoomService> = OnceLock::new();
    SERVICE.get_or_init(|| started_elsewhere(start_service())).clone()
}

/// The result of a future, from a runtime that never ends: the future's tasks must outlive the test that starts them.
fn started_elsewhere<T: Send + 'static>(start: impl Future<Output = T> + Send + 'static) -> T {
    let start = move || {
        let runtime = Box::leak(Box::new(tokio::runtime::Runtime::new().unwrap()));
        futures::executor::block_on(runtime.spawn(start)).unwrap()
    };
    // In a new thread, because the caller may be inside another runtime.
    std::thread::spawn(start).join().unwrap()
}

async fn start_service() -> RoomService {
    // The files stay open while the tests run, so their folder may be deleted.
    let (consensus, transport, _folder) = start_consensus().await;
    let settings = ServiceSettings { request_deadline: Duration::from_millis(10), ..ServiceSettings::default() };
    RoomService::new(consensus, transport, Arc::new(SystemRandom), settings)
}

/// A node that belongs to no cluster yet, and the folder with its files.
async fn start_consensus() -> (Consensus, Transport, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let storage = storage::open(StorageConfig::new(folder.path().join("data"), "n1"), &SystemRandom).unwrap();
    let node = Node { name: "n1".into(), peer_address: "192.0.2.2:7401".into(), client_url: "http://192.0.2.2".into() };
    let transport = Transport::new(Arc::new(HttpCarrier::new().unwrap()), None).unwrap();
    let parts = Parts { storage, node, transport: transport.clone(), clock: SystemClock::start().unwrap() };
    let consensus_settings = ConsensusSettings {
        heartbeat: Duration::from_millis(100),
        raft_election_timeout: Duration::from_millis(500),
        snapshot_every: 10_000,
        log_entries_kept: 20_000,
    };
    (consensus::start(parts, consensus_settings).await.unwrap(), transport, folder)
}

/// The service of a founded and ready cluster of one node, and the folder with its files.
fn founded_service() -> (RoomService, tempfile::TempDir) {
    started_elsewhere(async {
        let (consensus, transport, folder) = start_consensus().await;
        let random = Arc::new(SystemRandom);
        let peers = BTreeMap::from([("n1".to_owned(), "192.0.2.2:7401".to_owned())]);
        Founding { peers, transport: transport.clone(), random: random.clone() }.run(&consensus).await.unwrap();
        let service = RoomService::new(consensus, transport, random, ServiceSettings::default());
        while service.readiness().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (service, folder)
    })
}

fn router() -> Router {
    router_with(HttpSettings::default())
}

fn router_with(settings: HttpSettings) -> Router {
    let router = build_router(service(), settings, Arc::new(SystemRandom));
    router.layer(MockConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4711))))
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The error code, after a check of the parts that all errors have.
    fn code(&self) -> String {
        let body: crate::wire::ErrorBody = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(self.header("content-type"), "application/json");
        assert_eq!(self.header("x-request-id"), body.request_id);
        assert!(body.request_id.starts_with("req_") && body.request_id.len() == 26, "{}", body.request_id);
        let known: crate::wire::ErrorCode = serde_json::from_value(json!(body.code)).unwrap();
        assert_eq!(self.status.as_u16(), known.status());
        let retry_after_ms = body.retry_after_ms.map_or(String::new(), |millis| millis.div_ceil(1000).to_string());
        assert_eq!(self.header("retry-after"), retry_after_ms);
        body.code
    }
}

async fn send(router: &Router, request: Request<Body>) -> Answer {
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    Answer { status: parts.status, headers: parts.headers, body: to_bytes(body, 1 << 20).await.unwrap() }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

async fn get_path(path: &str) -> Answer {
    send(&router(), request("GET", path, &[], "")).await
}

async fn post(path: &str, body: impl Into<Body>) -> Answer {
    send(&router(), request("POST", path, &[("content-type", "application/json")], body)).await
}

#[tokio::test]
async fn creating_a_room_gives_its_paths_and_ignores_a_body() {
    let answer = post("/elections", "not json").await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let body = answer.json();
    let id = body["election_id"].as_str().unwrap();
    assert_eq!(id.len(), 32);
    assert_eq!(
        body,
        json!({"election_id": id, "campaign_path": format!("/elections/{id}/campaign"),
            "status_path": format!("/elections/{id}"), "watch_path": format!("/elections/{id}/watch")})
    );
    assert_eq!(answer.header("location"), format!("/elections/{id}"));
    assert!(answer.header("x-request-id").starts_with("req_"));
    assert_ne!(post("/elections", "").await.json(), body);
}

#[tokio::test]
async fn a_bad_room_is_invalid_input_on_every_route() {
    for id in ["short", &"a".repeat(65), "with%20space", "%ff%ff%ff%ff%ff%ff%ff%ff", "a%2Fb%2Fc%2Fd%2Fe", "%zz%zz%zz"] {
        assert_eq!(get_path(&format!("/elections/{id}")).await.code(), "invalid_input", "{id}");
        assert_eq!(get_path(&format!("/elections/{id}/watch")).await.code(), "invalid_input", "{id}");
        for action in ["campaign", "renew", "resign"] {
            assert_eq!(post(&format!("/elections/{id}/{action}"), "{}").await.code(), "invalid_input", "{id}");
        }
    }
}

#[tokio::test]
async fn a_malformed_body_is_invalid_input() {
    for action in ["campaign", "renew", "resign"] {
        let path = format!("{ROOM}/{action}");
        for body in ["", "{", "[]", "null", "{}", "{\"candidate_id\":7,\"leader_token\":7}"] {
            assert_eq!(post(&path, body).await.code(), "invalid_input", "{path} {body}");
        }
        assert_eq!(send(&router(), request("POST", &path, &[], "")).await.code(), "invalid_input");
        for headers in [&[][..], &[("content-type", "text/plain")], &[("content-type", "application/x-www-form")]] {
            let answer = send(&router(), request("POST", &path, headers, "{}")).await;
            assert_eq!(answer.code(), "unsupported_media_type", "{headers:?}");
        }
        for content_type in ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"] {
            let answer = send(&router(), request("POST", &path, &[("content-type", content_type)], "{}")).await;
            assert_eq!(answer.code(), "invalid_input", "{content_type}");
        }
    }
    let campaign = format!("{ROOM}/campaign");
    assert_eq!(post(&campaign, r#"{"candidate_id":"a","ttl_seconds":4}"#).await.code(), "invalid_ttl");
    assert_eq!(post(&campaign, r#"{"candidate_id":"a","ttl_seconds":7.5}"#).await.code(), "invalid_input");
    let renew = format!("{ROOM}/renew");
    assert_eq!(post(&renew, format!(r#"{{"leader_token":"{SECRET}","ttl_seconds":301}}"#)).await.code(), "invalid_ttl");
    assert_eq!(post(&renew, r#"{"leader_token":"malformed"}"#).await.code(), "invalid_input");
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large_with_a_length_and_in_chunks() {
    let large = json!({"candidate_id": "a", "metadata": "m".repeat(17_000)}).to_string();
    for action in ["campaign", "renew", "resign"] {
        let path = format!("{ROOM}/{action}");
        assert_eq!(post(&path, large.clone()).await.code(), "payload_too_large");
        let chunks =
            futures::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 1000]))));
        assert_eq!(post(&path, Body::from_stream(chunks)).await.code(), "payload_too_large");
    }
    let at_the_limit = format!("{{{}}}", " ".repeat(16 * 1024 - 2));
    assert_eq!(post(&format!("{ROOM}/campaign"), at_the_limit).await.code(), "invalid_input");
}

#[tokio::test]
async fn a_body_that_never_arrives_or_breaks_off_is_invalid_input() {
    let router = router_with(HttpSettings { body_deadline: Duration::from_millis(20), ..Default::default() });
    let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let answer = send(&router, request("POST", &format!("{ROOM}/campaign"), &[], never)).await;
    assert_eq!(answer.code(), "invalid_input");
    let broken = Body::from_stream(futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
    assert_eq!(post(&format!("{ROOM}/campaign"), broken).await.code(), "invalid_input");
}

#[tokio::test]
async fn a_bad_key_or_query_is_invalid_input() {
    let path = format!("{ROOM}/campaign");
    let json_type = ("content-type", "application/json");
    for headers in [
        &[json_type, ("idempotency-key", "short")][..],
        &[json_type, ("idempotency-key", "with a space in it")],
        &[json_type, ("idempotency-key", "0123456789abcdef"), ("idempotency-key", "0123456789abcdef")],
    ] {
        let answer = send(&router(), request("POST", &path, headers, r#"{"candidate_id":"a"}"#)).await;
        assert_eq!(answer.code(), "invalid_input", "{headers:?}");
    }
    for query in ["consistency=", "consistency=eventual", "consistency=local&consistency=local", "consistency=%ff"] {
        assert_eq!(get_path(&format!("{ROOM}?{query}")).await.code(), "invalid_input", "{query}");
    }
}

#[tokio::test]
async fn no_error_quotes_the_request() {
    let path = format!("{ROOM}/renew");
    for body in [
        format!(r#"{{"leader_token":["{SECRET}"]}}"#),
        format!(r#"{{"leader_token":"{SECRET}x"}}"#),
        format!(r#"{{"leader_token":"{SECRET}","ttl_seconds":"{SECRET}"}}"#),
        format!(r#"{{"leader_token":"{SECRET}"#),
    ] {
        let answer = post(&path, body).await;
        answer.code();
        assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET));
    }
    let in_path = get_path(&format!("/elections/{SECRET}{SECRET}")).await;
    assert!(!String::from_utf8_lossy(&in_path.body).contains(SECRET));
}

#[tokio::test]
async fn unknown_routes_are_not_found() {
    for path in ["/", "/nothing", "/elections/", "/elections/nightly-report/", "/%ff", "/metrics"] {
        assert_eq!(get_path(path).await.code(), "not_found", "{path}");
    }
    assert_eq!(post(&format!("{ROOM}/steal"), "").await.code(), "not_found");
}

#[tokio::test]
async fn another_method_is_answered_with_the_methods_of_the_route() {
    for (method, path, allow) in [
        ("GET", "/elections", "POST"),
        ("DELETE", ROOM, "GET,HEAD"),
        ("OPTIONS", ROOM, "GET,HEAD"),
        ("BREW", "/health", "GET,HEAD"),
        ("GET", "/elections/nightly-report/campaign", "POST"),
        ("POST", "/elections/nightly-report/watch", "GET,HEAD"),
    ] {
        let answer = send(&router(), request(method, path, &[], "")).await;
        assert_eq!(answer.code(), "method_not_allowed", "{method} {path}");
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn head_gives_the_status_of_get_without_the_body() {
    let answer = send(&router(), request("HEAD", "/openapi.json", &[], "")).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    let answer = send(&router(), request("HEAD", "/elections/short", &[], "")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_server_chooses_every_request_id() {
    let answer = send(&router(), request("GET", "/openapi.json", &[("x-request-id", "mine")], "")).await;
    assert!(answer.header("x-request-id").starts_with("req_"));
    assert_eq!(answer.headers.get_all("x-request-id").iter().count(), 1);
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_its_message() {
    let context = HandlerContext::new(service(), HttpSettings::default(), Arc::new(SystemRandom));
    let routes = Router::new().route("/panic", get(async || -> () { panic!("secret cause in /some/path") }));
    let answer =
        send(&router::add_common_layers(routes, &document::start(), context), request("GET", "/panic", &[], "")).await;
    assert_eq!(answer.code(), "internal_error");
    assert!(!String::from_utf8_lossy(&answer.body).contains("secret"));
}

#[tokio::test]
async fn campaigns_over_the_limit_are_told_when_to_retry_and_renewals_are_not_counted() {
    let router = router_with(HttpSettings { campaigns_per_minute: NonZeroU32::new(2).unwrap(), ..Default::default() });
    let campaign = || request("POST", "/elections/nightly-report/campaign", &[], "");
    assert_eq!(send(&router, request("POST", "/elections", &[], "")).await.status, StatusCode::CREATED);
    assert_eq!(send(&router, campaign()).await.code(), "invalid_input");
    let answer = send(&router, campaign()).await;
    assert_eq!(answer.code(), "rate_limited");
    let details = "this node allows each client 2 room creations and campaigns a minute; retry after retry_after_ms, \
                   or at another node";
    assert_eq!(answer.json()["details"], details);
    assert_eq!(answer.header("retry-after"), "30");
    assert!((29_000..=30_000).contains(&answer.json()["retry_after_ms"].as_u64().unwrap()));
    assert_eq!(send(&router, request("POST", "/elections", &[], "")).await.code(), "rate_limited");
    for action in ["renew", "resign"] {
        let path = format!("{ROOM}/{action}");
        assert_eq!(send(&router, request("POST", &path, &[], "")).await.code(), "invalid_input");
    }
}

#[tokio::test]
async fn each_client_behind_a_trusted_proxy_has_its_own_budget() {
    let router = router_with(HttpSettings {
        campaigns_per_minute: NonZeroU32::new(1).unwrap(),
        trusted_proxies: vec!["192.0.2.0/24".parse().unwrap()],
        ..Default::default()
    });
    let create = |client| request("POST", "/elections", &[("x-forwarded-for", client)], "");
    assert_eq!(send(&router, create("198.51.100.1")).await.status, StatusCode::CREATED);
    assert_eq!(send(&router, create("198.51.100.2")).await.status, StatusCode::CREATED);
    assert_eq!(send(&router, create("spoofed, 198.51.100.1")).await.code(), "rate_limited");
}

#[tokio::test]
async fn a_node_without_free_places_is_unavailable_and_still_answers_the_health_routes() {
    let router = router_with(HttpSettings { requests_in_flight_max: 0, ..Default::default() });
    for (method, path) in route_table::documented("nightly-report").await {
        let answer = send(&router, request(&method, &path, &[], "")).await;
        if path.starts_with("/elections") {
            assert_eq!(answer.code(), "unavailable", "{method} {path}");
            let details = "this node has too many requests in flight; retry after retry_after_ms, or at another node";
            assert_eq!(answer.json()["details"], details, "{method} {path}");
        } else {
            assert!(!String::from_utf8_lossy(&answer.body).contains("too many"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn streams_over_the_limit_are_rate_limited() {
    let router = router_with(HttpSettings { streams_per_client_max: 0, ..Default::default() });
    let answer = send(&router, request("GET", &format!("{ROOM}/watch"), &[], "")).await;
    assert_eq!(answer.code(), "rate_limited");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_body_is_a_server_error(body in prop::collection::vec(any::<u8>(), 0..200), action in 0..3usize) {
        let path = format!("{ROOM}/{}", ["campaign", "renew", "resign"][action]);
        // A valid request would reach the service.
        let valid = crate::wire::CampaignRequest::from_json(&body).is_ok();
        prop_assume!(!valid);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let status = runtime.block_on(post(&path, body)).status;
        prop_assert!(status.is_client_error(), "{}", status);
    }
}

#[derive(Clone, Default)]
struct Captured(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_trace_event_names_the_route_and_the_request_id_and_nothing_that_the_client_sent() {
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    // tracing decides once for each call site whether its events are wanted. The first thread that reaches it decides,
    // and that can be another test's thread. So all call sites are reached first, and then the decision is made again.
    get_path("/elections/short").await;
    tracing::callsite::rebuild_interest_cache();
    let headers =
        [("authorization", SECRET), ("idempotency-key", SECRET), ("x-request-id", SECRET), ("cookie", SECRET)];
    let body = format!(r#"{{"candidate_id":["{SECRET}"],"leader_token":["{SECRET}"]}}"#);
    let mut request_ids = Vec::new();
    for path in ["campaign", "renew", "resign", SECRET] {
        let path = format!("/elections/{SECRET}/{path}?token={SECRET}");
        let answer = send(&router(), request("POST", &path, &headers, body.clone())).await;
        request_ids.push(answer.header("x-request-id").to_owned());
    }
    drop(guard);
    let trace = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(!trace.contains(SECRET), "{trace}");
    assert!(trace.contains("/elections/{election_id}/campaign"), "{trace}");
    assert!(request_ids.iter().all(|id| trace.contains(&**id)), "{trace}");
}

mod route_table;
mod socket;
mod stream;
