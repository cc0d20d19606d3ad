use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::args::parse_duration;
use super::load::Load;
use super::op::Op;
use super::report::Report;

/// A node without a clock: its leases never expire.
#[derive(Clone)]
struct FakeNode {
    held: Arc<Mutex<HashSet<String>>>,
    campaigns_max: usize,
}

type FakeAnswer = (StatusCode, Json<Value>);

async fn campaign(State(node): State<FakeNode>, Path(room): Path<String>) -> FakeAnswer {
    let mut held = node.held.lock().unwrap();
    if held.contains(&room) {
        return (StatusCode::OK, Json(json!({"status": "follower", "retry_after_ms": 1000})));
    }
    if held.len() >= node.campaigns_max {
        return (StatusCode::TOO_MANY_REQUESTS, Json(json!({"code": "rate_limited", "retry_after_ms": 60_000})));
    }
    held.insert(room);
    (StatusCode::OK, Json(json!({"status": "leader", "leader_token": "secret"})))
}

async fn renew(State(node): State<FakeNode>, Path(room): Path<String>, Json(body): Json<Value>) -> FakeAnswer {
    if body["leader_token"] == "secret" && node.held.lock().unwrap().contains(&room) {
        return (StatusCode::OK, Json(json!({"status": "leader"})));
    }
    (StatusCode::NOT_FOUND, Json(json!({"code": "lease_not_current"})))
}

async fn resign(State(node): State<FakeNode>, Path(room): Path<String>) -> FakeAnswer {
    node.held.lock().unwrap().remove(&room);
    (StatusCode::OK, Json(json!({"status": "vacant"})))
}

async fn view(State(node): State<FakeNode>, Path(room): Path<String>) -> FakeAnswer {
    let status = if node.held.lock().unwrap().contains(&room) { "leader" } else { "vacant" };
    (StatusCode::OK, Json(json!({"status": status})))
}

/// Serves the same rooms under two URLs.
async fn fake_cluster(campaigns_max: usize) -> (Vec<String>, FakeNode) {
    let node = FakeNode { held: Arc::default(), campaigns_max };
    let router = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/elections/{room}", get(view))
        .route("/elections/{room}/campaign", post(campaign))
        .route("/elections/{room}/renew", post(renew))
        .route("/elections/{room}/resign", post(resign))
        .with_state(node.clone());
    let mut urls = Vec::new();
    for _ in 0..2 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        urls.push(format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(axum::serve(listener, router.clone()).into_future());
    }
    (urls, node)
}

#[tokio::test]
async fn every_operation_is_measured_on_all_urls() {
    let (urls, node) = fake_cluster(usize::MAX).await;
    let load = Load::new(urls.clone(), Duration::from_millis(50), 3).unwrap();
    let mut report = Report::new(urls, Duration::from_millis(50));
    for op in [Op::Renew, Op::Lose, Op::Status, Op::Campaign] {
        // The benchmark gives held rooms up after each run. `Op::Campaign` is the last one, because its rooms expire by
        // themselves, and this node has no clock.
        assert!(node.held.lock().unwrap().is_empty());
        report.add(op.name(), 4, load.run(op, 4).await.unwrap());
    }
    for run in report.to_json()["runs"].as_array().unwrap() {
        assert!(run["ops"].as_u64().unwrap() >= 4, "{run}");
        assert_eq!(run["errors"], json!({}));
    }
}

#[tokio::test]
async fn failures_are_counted_by_code_and_the_rate_limit_is_explained() {
    let (urls, _) = fake_cluster(2).await;
    let load = Load::new(urls.clone(), Duration::from_millis(50), 1).unwrap();
    let mut report = Report::new(urls, Duration::from_millis(50));
    report.add("campaign", 1, load.run(Op::Campaign, 1).await.unwrap());
    let run = &report.to_json()["runs"][0];
    assert_eq!(run["ops"], 2);
    assert!(run["errors"]["rate_limited"].as_u64().unwrap() >= 1, "{run}");
    assert_eq!(report.notes().len(), 1);

    let error = load.run(Op::Renew, 1).await.unwrap_err();
    assert!(format!("{error:#}").contains("--campaigns-per-minute"), "{error:#}");
}

#[test]
fn a_run_is_shorter_than_the_leases_that_it_needs() {
    assert_eq!(parse_duration("4m"), Ok(Duration::from_secs(240)));
    assert!(parse_duration("5m").is_err() && parse_duration("0s").is_err() && parse_duration("soon").is_err());
}
