//! No secret shows up where it does not belong: not in what nodes print at trace level, not on their disks, not in
//! their public answers, and not in an error about a bad request.

use std::path::Path;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::json;
use sha2::Sha256;

use crate::caller::{Answer, Caller};
use crate::harness::{self, CLUSTER_SECRET, Cluster, PATIENCE, write_secret};
use crate::secret_scanner::{PIECE, Scanner, hex};

const ACCESS_TOKEN: &str = "Hd7Jw2Ks9Qx4Mf6Zb1Tn8Vg3Yc5Lr0Pa";
const WRONG_ACCESS_TOKEN: &str = "Xe3Ub8Gi5Oy1Wk7Df2Sm9Zq4Hv6Jt0Nc";

/// A lease with the two secrets that go with it.
struct SecretLease {
    room: String,
    token: String,
    key: String,
}

/// Talks to the nodes, and keeps every part of their answers that somebody without a lease may read.
struct Talk {
    callers: Vec<Caller>,
    scanner: Scanner,
    public: Vec<String>,
}

impl Talk {
    async fn with(cluster: &Cluster) -> Talk {
        let mut scanner = Scanner::default();
        scanner.add_text("the access token", ACCESS_TOKEN);
        scanner.add_text("the wrong access token", WRONG_ACCESS_TOKEN);
        scanner.add_text("the cluster secret", CLUSTER_SECRET);
        let mut mac = Hmac::<Sha256>::new_from_slice(CLUSTER_SECRET.as_bytes()).unwrap();
        mac.update(b"quorate peer request 1");
        let proof: Vec<u8> = mac.finalize().into_bytes().to_vec();
        scanner.add("the proof", &proof, PIECE);
        scanner.add("the proof", hex(&proof).as_bytes(), 2 * PIECE);
        Talk { callers: Caller::of_each(cluster).await, scanner, public: Vec::new() }
    }

    async fn send(&mut self, place: usize, method: Method, path: &str, key: Option<&str>, body: String) -> Answer {
        let mut request = self.callers[place].request(method, path).bearer_auth(ACCESS_TOKEN);
        request = request.header("content-type", "application/json").body(body);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.keep(self.callers[place].send(request).await)
    }

    async fn post(&mut self, place: usize, path: &str, body: serde_json::Value) -> Answer {
        self.send(place, Method::POST, path, None, body.to_string()).await
    }

    fn keep(&mut self, answer: Answer) -> Answer {
        let mut body = answer.body.clone();
        if let Some(fields) = body.as_object_mut().filter(|_| answer.status == 200)
            && fields.remove("leader_token").is_some()
        {
            // The token in a holder's answer is for the holder. The rest of that answer is public.
            self.public.push(format!("{:?} {body}", answer.headers));
        } else {
            self.public.push(format!("{:?} {}", answer.headers, answer.text));
        }
        answer
    }

    /// Wins a room with a key. From then on the scanner searches for the token and the key.
    async fn win(&mut self, place: usize, room: &str) -> SecretLease {
        let key = format!("{}{}", random_text(), random_text());
        self.scanner.add_text(&format!("the key of {room}"), &key);
        let body = json!({"candidate_id": "worker-a", "ttl_seconds": 300, "metadata": "public-canary"}).to_string();
        let path = format!("/elections/{room}/campaign");
        let token = self.send(place, Method::POST, &path, Some(&key), body).await.held(room).token;
        self.scanner.add_token(&format!("the token of {room}"), &token);
        SecretLease { room: room.to_owned(), token, key }
    }

    /// Uses both secrets of a lease as they are meant to be used.
    async fn use_properly(&mut self, place: usize, SecretLease { room, token, key }: &SecretLease) {
        let path = format!("/elections/{room}");
        assert_eq!(self.post(place, &format!("{path}/renew"), json!({"leader_token": token})).await.status, 200);
        let campaign = json!({"candidate_id": "worker-a", "wait_seconds": 1}).to_string();
        let again = self.send(place, Method::POST, &format!("{path}/campaign"), Some(key), campaign).await;
        assert_eq!(again.held(room).token, *token);
    }

    /// Makes the mistakes that people make with their secrets: a secret in the wrong field, header, path or query.
    async fn misuse(&mut self, place: usize, SecretLease { room, token, key }: &SecretLease) {
        let wrong =
            URL_SAFE_NO_PAD.encode([*uuid::Uuid::new_v4().as_bytes(), *uuid::Uuid::new_v4().as_bytes()].concat());
        self.scanner.add_token("a wrong token", &wrong);
        let with_token = json!({"leader_token": token}).to_string();
        let with_wrong_token = json!({"leader_token": wrong}).to_string();
        let [room_path, campaign, renew, resign] =
            ["", "/campaign", "/renew", "/resign"].map(|action| format!("/elections/{room}{action}"));
        let bad_ttl = format!(r#"{{"leader_token":"{token}","ttl_seconds":"{token}"}}"#);
        let bad_campaign = json!({"candidate_id": format!("{token}/{key}"), "metadata": [token]}).to_string();
        for (method, path, key, body, status) in [
            (Method::POST, renew.clone(), None, with_wrong_token.clone(), 404),
            (Method::POST, resign.clone(), None, with_wrong_token, 404),
            (Method::POST, renew.clone(), None, format!(r#"{{"leader_token":"{token}"#), 400),
            (Method::POST, renew.clone(), None, format!(r#"{{"leader_token":["{token}"]}}"#), 400),
            (Method::POST, renew.clone(), None, format!(r#"{{"leader_token":"{token}A"}}"#), 400),
            (Method::POST, renew.clone(), None, bad_ttl, 400),
            (Method::POST, resign.clone(), None, format!(r#""{token}""#), 400),
            (Method::POST, resign, None, token.clone(), 400),
            (Method::POST, campaign.clone(), None, bad_campaign, 400),
            (Method::POST, campaign.clone(), Some(format!("{key} with a space")), with_token.clone(), 400),
            (Method::POST, campaign, Some(key.repeat(4)), with_token.clone(), 400),
            (Method::PUT, renew.clone(), Some(key.clone()), with_token.clone(), 405),
            (Method::POST, format!("/elections/{token}/no-such-route"), None, with_token, 404),
            (Method::GET, format!("{room_path}?leader_token={token}&consistency={key}"), None, String::new(), 400),
            (Method::GET, format!("{room_path}?leader_token={token}"), None, String::new(), 200),
            (Method::GET, format!("/elections/{token}."), None, String::new(), 400),
        ] {
            let answer = self.send(place, method, &path, key.as_deref(), body).await;
            assert_eq!(answer.status, status, "{}", answer.text);
        }
        let stranger = self.callers[place].request(Method::POST, &renew).bearer_auth(WRONG_ACCESS_TOKEN);
        let answer = self.callers[place].send(stranger).await;
        assert_eq!(self.keep(answer).status, 401);
    }

    /// Sends a request with a wrong secret to the port that is for peers only.
    async fn call_as_a_stranger(&mut self, peer_url: &str) {
        let request = harness::http().post(format!("{peer_url}/peer/v1/forward")).bearer_auth(WRONG_ACCESS_TOKEN);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401);
        let headers = format!("{:?}", answer.headers());
        self.public.push(format!("{headers} {}", answer.text().await.unwrap()));
    }

    /// Renews until it succeeds, which takes until there is a raft leader.
    async fn renew_in_the_end(&mut self, place: usize, SecretLease { room, token, .. }: &SecretLease) {
        let deadline = Instant::now() + PATIENCE;
        let body = json!({"leader_token": token, "metadata": "renewed"});
        while self.post(place, &format!("/elections/{room}/renew"), body.clone()).await.status != 200 {
            assert!(Instant::now() < deadline, "{room} is not renewed");
        }
    }
}

/// 22 random characters.
fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(uuid::Uuid::new_v4())
}

/// Checks that no node has printed or stored a secret. Says how much was read.
fn nodes_keep_secrets(cluster: &Cluster, scanner: &Scanner) {
    let mut printed = 0;
    for node in &cluster.nodes {
        let output = node.output();
        for target in ["openraft", "hyper", "quorate::http"] {
            assert!(output.contains(target), "{target} printed nothing, so this test has shown nothing");
        }
        scanner.finds_nothing_in("the output", output.as_bytes());
        printed += output.len();
        assert!(scanner.finds_nothing_below(&node.settings.data_dir) > 1_000, "hardly anything is stored");
    }
    println!("{printed} bytes of output and all data directories contain no secret");
}

/// Shows that the search would find a secret: plants one in a place that was just searched.
fn planted_secret_is_found(data_dir: &Path, scanner: &Scanner, lease: &SecretLease) {
    let planted = data_dir.join("planted");
    std::fs::write(&planted, format!("x{}", &lease.token[3..19])).unwrap();
    let name = format!("the token of {}", lease.room);
    assert_eq!(scanner.found_in(&std::fs::read(planted).unwrap()).first(), Some(&name.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_printed_or_stored_or_answered() {
    let folder = tempfile::tempdir().unwrap();
    let access = write_secret(folder.path(), "access", ACCESS_TOKEN);
    let everything = "trace,openraft=trace,sled=trace,raft_log=trace,chunked_wal=trace";
    let args = ["--log-level", everything, "--access-token-file", access.to_str().unwrap()];
    let mut cluster = Cluster::three_with(&args).await;
    let mut talk = Talk::with(&cluster).await;

    let mut leases = Vec::new();
    for count in 0..9 {
        leases.push(talk.win(count % 3, &format!("secret-room-{count}")).await);
    }
    for (count, lease) in leases.iter().enumerate() {
        // By another node than the one that granted it, in turn, so that most requests are forwarded.
        talk.use_properly((count + 1) % 3, lease).await;
        talk.misuse((count + 1) % 3, lease).await;
    }
    talk.call_as_a_stranger(&cluster.nodes[0].settings.peer_url()).await;

    let killed = cluster.raft_leader().await;
    cluster.nodes[killed].kill();
    for lease in &leases[..3] {
        talk.renew_in_the_end((killed + 1) % 3, lease).await;
    }
    cluster.nodes[killed].start_again();
    cluster.ready().await;
    for SecretLease { room, token, .. } in &leases[..6] {
        let resigned = talk.post(killed, &format!("/elections/{room}/resign"), json!({"leader_token": token})).await;
        assert_eq!(resigned.status, 200, "{}", resigned.text);
    }
    for place in 0..3 {
        for path in ["/status", "/livez", "/readyz", "/openapi.json", "/metrics", "/"] {
            talk.send(place, Method::GET, path, None, String::new()).await;
        }
    }
    cluster.converged().await;

    assert!(talk.public.len() > 150);
    for answer in &talk.public {
        talk.scanner.finds_nothing_in("an answer", answer.as_bytes());
    }
    nodes_keep_secrets(&cluster, &talk.scanner);
    planted_secret_is_found(&cluster.nodes[0].settings.data_dir, &talk.scanner, &leases[8]);
}
