//! Clients that talk to one node over HTTP. Each answer is checked: it must have what all answers have in common, and
//! its status must be one that the node's own OpenAPI document names for that request.

use std::sync::Arc;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::harness::{self, Cluster, Node, eventually};

/// Every error code of the contract, with its status.
const CODES: [(u16, &str); 15] = [
    (400, "invalid_input"),
    (400, "invalid_ttl"),
    (401, "authentication_required"),
    (401, "authentication_failed"),
    (403, "forbidden"),
    (404, "lease_not_current"),
    (404, "not_found"),
    (405, "method_not_allowed"),
    (409, "capacity_exceeded"),
    (413, "payload_too_large"),
    (415, "unsupported_media_type"),
    (429, "rate_limited"),
    (500, "internal_error"),
    (503, "unavailable"),
    (503, "outcome_unknown"),
];

/// A lease that a test holds.
#[derive(Debug, Clone)]
pub struct Held {
    pub room: String,
    pub token: String,
    pub term: u64,
}

impl Held {
    /// The lease in the body of an answer that grants or renews it.
    #[track_caller]
    pub fn from_body(room: &str, body: &Value) -> Held {
        assert_eq!(body["status"], "leader", "{body}");
        Held {
            room: room.into(),
            token: body["leader_token"].as_str().unwrap().into(),
            term: body["leader"]["term"].as_u64().unwrap(),
        }
    }
}

/// One answer, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
    /// Null if the text is not JSON.
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks the status, and that the body has exactly these fields.
    #[track_caller]
    pub fn has_fields(&self, status: u16, fields: &str) -> &Self {
        assert_eq!((self.status, fields_of(&self.body).join(" ").as_str()), (status, fields), "{}", self.text);
        self
    }

    #[track_caller]
    pub fn is_error(&self, status: u16, code: &str) -> &Self {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{}", self.text);
        self
    }

    /// Checks that another contender holds the room.
    #[track_caller]
    pub fn is_follower(&self) -> &Self {
        assert_eq!((self.status, &self.body["status"]), (200, &json!("follower")), "{}", self.text);
        self
    }

    /// The lease that this answer grants or renews.
    #[track_caller]
    pub fn held(&self, room: &str) -> Held {
        assert_eq!(self.status, 200, "{}", self.text);
        Held::from_body(room, &self.body)
    }

    /// Checks what every answer has in common: its headers, and the fields of an error.
    fn check(&self) {
        let request_id = self.header("x-request-id");
        assert!(request_id.starts_with("req_") && request_id.len() == 26, "{self:?}");
        assert_eq!(self.header("cache-control"), "no-store", "{self:?}");
        assert_eq!(self.status == 401, self.header("www-authenticate") == "Bearer", "{self:?}");
        assert_eq!(self.status == 405, !self.header("allow").is_empty(), "{self:?}");
        let retry_after = self.header("retry-after");
        if self.status < 400 || self.text.is_empty() {
            return;
        }
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        let code = self.body["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}"));
        assert!(CODES.contains(&(self.status, code)), "{self:?}");
        assert_eq!(self.body["request_id"], request_id);
        assert!(self.body["error"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        let known = ["code", "details", "error", "request_id", "retry_after_ms"];
        assert!(fields_of(&self.body).iter().all(|field| known.contains(field)), "{self:?}");
        let retry_after_ms = self.body["retry_after_ms"].as_u64();
        assert_eq!(retry_after, retry_after_ms.map_or(String::new(), |millis| millis.div_ceil(1000).to_string()));
        let must_say_when = matches!(code, "capacity_exceeded" | "rate_limited" | "unavailable");
        assert!(!must_say_when || retry_after_ms.is_some_and(|millis| millis > 0), "{self:?}");
    }
}

/// The names of an object's fields, sorted.
pub fn fields_of(value: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    fields.sort_unstable();
    fields
}

/// A client of one node.
#[derive(Clone)]
pub struct Caller {
    pub url: String,
    pub document: Arc<Value>,
    http: reqwest::Client,
}

impl Caller {
    /// A client of this node. Waits until the node serves its OpenAPI document, which it does before it is ready.
    pub async fn of(node: &Node) -> Caller {
        let http = harness::http();
        let document = eventually("the node serves its OpenAPI document", async || {
            let response = http.get(format!("{}/openapi.json", node.url())).send().await.ok()?;
            assert_eq!(response.status(), 200);
            response.json().await.ok()
        });
        Caller { url: node.url(), document: Arc::new(document.await), http: http.clone() }
    }

    /// A client of each node, in the order of the nodes.
    pub async fn of_each(cluster: &Cluster) -> Vec<Caller> {
        futures::future::join_all(cluster.nodes.iter().map(Caller::of)).await
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        self.try_send(request).await.expect("the node answers")
    }

    /// The answer, or `None` if the node is gone.
    pub async fn try_send(&self, request: RequestBuilder) -> Option<Answer> {
        let request = request.build().unwrap();
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = self.http.execute(request).await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.ok()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        let answer = Answer { status, headers, text, body };
        answer.check();
        if method != Method::HEAD {
            self.check_documented(&method, &path, &answer);
        }
        Some(answer)
    }

    /// Checks that the OpenAPI document lists this status for this request.
    fn check_documented(&self, method: &Method, path: &str, answer: &Answer) {
        let item = self.document["paths"].as_object().unwrap().iter().find(|(template, _)| is_path_of(template, path));
        let Some((template, item)) = item else {
            answer.is_error(404, "not_found");
            return;
        };
        let Some(operation) = item.get(method.as_str().to_lowercase()) else {
            answer.is_error(405, "method_not_allowed");
            return;
        };
        let responses = operation["responses"].as_object().unwrap();
        assert!(
            responses.contains_key(&answer.status.to_string()),
            "the OpenAPI document does not list this answer to {method} {template}: {answer:?}"
        );
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    /// Sends this text as it is, with the content type of JSON.
    pub async fn post_text(&self, path: &str, body: &str) -> Answer {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(body.to_owned())).await
    }

    pub async fn campaign(&self, room: &str, body: Value) -> Answer {
        self.post(&format!("/elections/{room}/campaign"), body).await
    }

    /// Campaigns for a vacant room, and returns the lease.
    pub async fn win(&self, room: &str, candidate: &str, ttl_seconds: u64) -> Held {
        self.campaign(room, json!({"candidate_id": candidate, "ttl_seconds": ttl_seconds})).await.held(room)
    }

    pub async fn campaign_with_key(&self, room: &str, candidate: &str, key: &str) -> Answer {
        let request = self.request(Method::POST, &format!("/elections/{room}/campaign"));
        self.send(request.header("Idempotency-Key", key).json(&json!({"candidate_id": candidate}))).await
    }

    pub async fn renew(&self, room: &str, token: &str) -> Answer {
        self.post(&format!("/elections/{room}/renew"), json!({"leader_token": token})).await
    }

    pub async fn resign(&self, room: &str, token: &str) -> Answer {
        self.post(&format!("/elections/{room}/resign"), json!({"leader_token": token})).await
    }

    pub async fn status(&self, room: &str) -> Answer {
        self.get(&format!("/elections/{room}")).await
    }

    /// The room as this node knows it, without asking the raft leader.
    pub async fn local_status(&self, room: &str) -> Answer {
        self.get(&format!("/elections/{room}?consistency=local")).await
    }
}

/// A cluster of one node, and a client of it.
pub async fn one_node(args: &[&str]) -> (Cluster, Caller) {
    let cluster = Cluster::single_with(args).await;
    let caller = Caller::of(&cluster.nodes[0]).await;
    (cluster, caller)
}

/// Wins 50 rooms and renews all of them again and again, until the log is longer by about this many entries.
pub async fn fill_log(caller: &Caller, entries: usize) -> Vec<Held> {
    const ROOMS: usize = 50;
    let mut held = Vec::new();
    for count in 0..ROOMS {
        held.push(caller.win(&format!("by-snapshot-{count}"), "worker-a", 300).await);
    }
    for _ in 0..entries / ROOMS {
        let renewals = held.iter().map(|lease| caller.renew(&lease.room, &lease.token));
        for renewed in futures::future::join_all(renewals).await {
            assert_eq!(renewed.status, 200, "{}", renewed.text);
        }
    }
    held
}

/// Whether a path such as `/elections/nightly-report` matches a template such as `/elections/{election_id}`.
fn is_path_of(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('/'));
    template.clone().count() == path.clone().count()
        && template.zip(path).all(|(wanted, found)| (wanted.starts_with('{') && !found.is_empty()) || wanted == found)
}
