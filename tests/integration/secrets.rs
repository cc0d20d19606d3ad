//! Nobody finds a secret where none belongs: not in what nodes print at their most talkative, not on their
//! disks, not in what they say about themselves or about a bad request.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::harness::{self, CLUSTER_SECRET, Cluster, eventually, write_secret};

/// The least piece of a secret that is looked for.
const PIECE: usize = 8;

/// Finds pieces of secrets in whatever it is given. Any 16 bytes of a secret hold one of its pieces.
#[derive(Default)]
struct Scanner {
    /// What begins with these bytes, and whose secret it is.
    pieces: HashMap<[u8; PIECE], Vec<(Vec<u8>, String)>>,
    /// Whether any piece begins with these two bytes: most positions need no other look.
    beginnings: Vec<bool>,
}

impl Scanner {
    /// A secret as it is written, in pieces of `length`.
    fn add(&mut self, name: &str, secret: &[u8], length: usize) {
        assert!(secret.len() >= length && length >= PIECE, "{name}");
        self.beginnings.resize(1 << 16, false);
        for start in (0..=secret.len() - length).step_by(PIECE).chain([secret.len() - length]) {
            let piece = &secret[start..start + length];
            self.beginnings[usize::from(u16::from_be_bytes([piece[0], piece[1]]))] = true;
            let key = piece[..PIECE].try_into().unwrap();
            self.pieces.entry(key).or_default().push((piece.to_vec(), name.to_owned()));
        }
    }

    /// A secret of letters and digits without a meaning.
    fn add_text(&mut self, name: &str, secret: &str) {
        self.add(name, secret.as_bytes(), PIECE);
    }

    /// A leader token: as the wire has it, as bytes, and as programs print bytes.
    fn add_token(&mut self, name: &str, token: &str) {
        self.add_text(name, token);
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        self.add(name, &bytes, PIECE);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add(name, hex.as_bytes(), 2 * PIECE);
        let list = format!("{bytes:?}");
        for start in (0..list.len() - 40).filter(|start| list.as_bytes()[*start] == b' ') {
            self.add(name, &list.as_bytes()[start..start + 40], 40);
        }
    }

    fn found_in(&self, text: &[u8]) -> Vec<&str> {
        let mut found = Vec::new();
        for (at, window) in text.windows(PIECE).enumerate() {
            if !self.beginnings[usize::from(u16::from_be_bytes([window[0], window[1]]))] {
                continue;
            }
            let Some(candidates) = self.pieces.get(window) else { continue };
            found.extend(candidates.iter().filter(|(piece, _)| text[at..].starts_with(piece)).map(|(_, name)| &**name));
        }
        found
    }

    #[track_caller]
    fn finds_nothing_in(&self, place: &str, text: &[u8]) {
        let found = self.found_in(text);
        assert!(found.is_empty(), "in {place}: {found:?}");
    }
}

#[test]
fn the_scanner_finds_what_it_shall_find() {
    let mut scanner = Scanner::default();
    let bytes: [u8; 32] = std::array::from_fn(|index| (index * 37 + 11) as u8);
    let token = URL_SAFE_NO_PAD.encode(bytes);
    scanner.add_token("token", &token);
    scanner.add_text("key", "Qm4Zt8Kx1Vb6Nw3Rj9Pc5Hy2");
    let around = |piece: &[u8]| [b"before \xff", piece, b"\0 after"].concat();
    for length in [16, 20, 43] {
        for start in 0..=token.len() - length {
            assert!(
                !scanner.found_in(&around(&token.as_bytes()[start..start + length])).is_empty(),
                "{start} {length}"
            );
        }
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for (name, form) in [
        ("token", bytes.to_vec()),
        ("token", bytes[..16].to_vec()),
        ("token", bytes[16..].to_vec()),
        ("token", hex.into_bytes()),
        ("token", format!("SecretHash({bytes:?})").into_bytes()),
        ("token", token[..8].into()),
        ("key", b"idempotency-key: Qm4Zt8Kx1Vb6Nw3Rj9Pc5Hy2".to_vec()),
        ("key", b"Qm4Zt8Kx".to_vec()),
        ("key", b"9Pc5Hy2 after Zt8Kx1Vb6Nw3Rj9P".to_vec()),
    ] {
        assert_eq!(scanner.found_in(&around(&form)).first(), Some(&name), "{form:?}");
    }
    assert_eq!(scanner.found_in(b"nothing of it, nor \"Qm4Zt8K\" and \"leader_token\""), Vec::<&str>::new());
}

/// Everything in a folder, file by file.
fn scan_folder(scanner: &Scanner, folder: &Path) -> usize {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        scanner.finds_nothing_in("a file name", path.as_os_str().as_encoded_bytes());
        if path.is_dir() {
            bytes += scan_folder(scanner, &path);
        } else if let Ok(content) = std::fs::read(&path) {
            // One that is gone by now was renamed, and is read under its new name.
            scanner.finds_nothing_in(&path.display().to_string(), &content);
            bytes += content.len();
        }
    }
    bytes
}

const ACCESS_TOKEN: &str = "Hd7Jw2Ks9Qx4Mf6Zb1Tn8Vg3Yc5Lr0Pa";
const WRONG_ACCESS_TOKEN: &str = "Xe3Ub8Gi5Oy1Wk7Df2Sm9Zq4Hv6Jt0Nc";

/// Calls nodes, and keeps all that they say which isn't meant for a holder.
struct Talk {
    http: reqwest::Client,
    scanner: Scanner,
    /// What may be read by people who hold nothing.
    public: Vec<String>,
}

impl Talk {
    async fn send(&mut self, method: Method, url: &str, key: Option<&str>, body: String) -> Option<(u16, Value)> {
        let mut request = self.http.request(method, url).bearer_auth(ACCESS_TOKEN);
        request = request.header("content-type", "application/json").body(body);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.keep(request).await
    }

    async fn keep(&mut self, request: reqwest::RequestBuilder) -> Option<(u16, Value)> {
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let headers = format!("{:?}", response.headers());
        let text = response.text().await.ok()?;
        let mut body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let answer = (status, body.clone());
        if let Some(fields) = body.as_object_mut().filter(|_| status == 200)
            && fields.remove("leader_token").is_some()
        {
            // What is left of a holder's answer is public.
            self.public.push(format!("{headers} {body}"));
        } else {
            self.public.push(format!("{headers} {text}"));
        }
        Some(answer)
    }

    /// Wins a room with a key, and puts both secrets on the list.
    async fn win(&mut self, url: &str, room: &str) -> (String, String) {
        let key = format!("{}{}", random_text(), random_text());
        self.scanner.add_text(&format!("the key of {room}"), &key);
        let body = json!({"candidate_id": "worker-a", "ttl_seconds": 300, "metadata": "public-canary"}).to_string();
        let (status, body) =
            self.send(Method::POST, &format!("{url}/elections/{room}/campaign"), Some(&key), body).await.unwrap();
        assert_eq!(status, 200, "{body}");
        let token = body["leader_token"].as_str().unwrap().to_owned();
        self.scanner.add_token(&format!("the token of {room}"), &token);
        (token, key)
    }
}

/// 22 characters without any meaning.
fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(uuid::Uuid::new_v4())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_printed_stored_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let access = write_secret(folder.path(), "access", ACCESS_TOKEN);
    let everything = "trace,openraft=trace,sled=trace,raft_log=trace,chunked_wal=trace";
    let args = ["--log-level", everything, "--access-token-file", access.to_str().unwrap()];
    let mut cluster = Cluster::three_with(&args).await;
    let urls = cluster.urls();
    let mut talk = Talk { http: harness::http(), scanner: Scanner::default(), public: Vec::new() };
    talk.scanner.add_text("the access token", ACCESS_TOKEN);
    talk.scanner.add_text("the wrong access token", WRONG_ACCESS_TOKEN);
    talk.scanner.add_text("the cluster secret", CLUSTER_SECRET);
    let mut mac = Hmac::<Sha256>::new_from_slice(CLUSTER_SECRET.as_bytes()).unwrap();
    mac.update(b"quorate peer request 1");
    let proof: Vec<u8> = mac.finalize().into_bytes().to_vec();
    let proof_hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
    talk.scanner.add("the proof", &proof, PIECE);
    talk.scanner.add("the proof", proof_hex.as_bytes(), 2 * PIECE);

    let mut held = Vec::new();
    for count in 0..9 {
        let (room, url) = (format!("secret-room-{count}"), &urls[count % 3]);
        let (token, key) = talk.win(url, &room).await;
        held.push((room, token, key));
    }
    for (count, (room, token, key)) in held.iter().enumerate() {
        // Through each node in turn, so that most are forwarded.
        let url = &urls[(count + 1) % 3];
        let path = format!("{url}/elections/{room}");
        let ask = json!({"leader_token": token}).to_string();
        assert_eq!(talk.send(Method::POST, &format!("{path}/renew"), None, ask.clone()).await.unwrap().0, 200);
        let campaign = json!({"candidate_id": "worker-a", "wait_seconds": 1}).to_string();
        let (_, again) = talk.send(Method::POST, &format!("{path}/campaign"), Some(key), campaign).await.unwrap();
        assert_eq!(again["leader_token"], **token);
        // What people do by mistake with their secrets.
        let wrong =
            URL_SAFE_NO_PAD.encode([*uuid::Uuid::new_v4().as_bytes(), *uuid::Uuid::new_v4().as_bytes()].concat());
        talk.scanner.add_token("a wrong token", &wrong);
        let bad_campaign = json!({"candidate_id": format!("{token}/{key}"), "metadata": [token]}).to_string();
        for (method, path, key, body, status) in [
            (Method::POST, format!("{path}/renew"), None, json!({"leader_token": wrong}).to_string(), 404),
            (Method::POST, format!("{path}/resign"), None, json!({"leader_token": wrong}).to_string(), 404),
            (Method::POST, format!("{path}/renew"), None, format!(r#"{{"leader_token":"{token}"#), 400),
            (Method::POST, format!("{path}/renew"), None, format!(r#"{{"leader_token":["{token}"]}}"#), 400),
            (Method::POST, format!("{path}/renew"), None, format!(r#"{{"leader_token":"{token}A"}}"#), 400),
            (
                Method::POST,
                format!("{path}/renew"),
                None,
                format!(r#"{{"leader_token":"{token}","ttl_seconds":"{token}"}}"#),
                400,
            ),
            (Method::POST, format!("{path}/resign"), None, format!(r#""{token}""#), 400),
            (Method::POST, format!("{path}/resign"), None, token.clone(), 400),
            (Method::POST, format!("{path}/campaign"), None, bad_campaign, 400),
            (Method::POST, format!("{path}/campaign"), Some(format!("{key} with a space")), ask.clone(), 400),
            (Method::POST, format!("{path}/campaign"), Some(key.repeat(4)), ask.clone(), 400),
            (Method::PUT, format!("{path}/renew"), Some(key.clone()), ask.clone(), 405),
            (Method::POST, format!("{url}/elections/{token}/no-such-route"), None, ask.clone(), 404),
            (Method::GET, format!("{path}?leader_token={token}&consistency={key}"), None, String::new(), 400),
            (Method::GET, format!("{path}?leader_token={token}"), None, String::new(), 200),
            (Method::GET, format!("{url}/elections/{token}."), None, String::new(), 400),
        ] {
            let (found, body) = talk.send(method, &path, key.as_deref(), body).await.unwrap();
            assert_eq!(found, status, "{body}");
        }
        let stranger = talk.http.post(format!("{path}/renew")).bearer_auth(WRONG_ACCESS_TOKEN);
        assert_eq!(talk.keep(stranger).await.unwrap().0, 401);
    }
    let peer = talk.http.post(format!("{}/peer/v1/forward", cluster.nodes[0].settings.peer_url()));
    assert_eq!(talk.keep(peer.bearer_auth(WRONG_ACCESS_TOKEN)).await.unwrap().0, 401);

    let killed = cluster.raft_leader().await;
    cluster.nodes[killed].kill();
    let survivor = &urls[(killed + 1) % 3];
    for (room, token, _) in &held[..3] {
        let body = json!({"leader_token": token, "metadata": "renewed"}).to_string();
        let url = format!("{survivor}/elections/{room}/renew");
        for _ in 0..500 {
            if talk.send(Method::POST, &url, None, body.clone()).await.is_some_and(|(status, _)| status == 200) {
                break;
            }
        }
    }
    cluster.nodes[killed].start_again();
    cluster.ready().await;
    for (room, token, _) in &held[..6] {
        let url = format!("{}/elections/{room}/resign", urls[killed]);
        let body = json!({"leader_token": token}).to_string();
        assert_eq!(talk.send(Method::POST, &url, None, body).await.unwrap().0, 200, "{room}");
    }
    for url in &urls {
        for path in ["/status", "/livez", "/readyz", "/openapi.json", "/metrics", "/"] {
            talk.send(Method::GET, &format!("{url}{path}"), None, String::new()).await.unwrap();
        }
    }
    cluster.converged().await;

    let (scanner, public) = (talk.scanner, talk.public);
    assert!(public.len() > 150);
    for answer in public {
        scanner.finds_nothing_in("an answer", answer.as_bytes());
    }
    let mut printed = 0;
    for node in &cluster.nodes {
        let output = eventually("the last of the output", || async { Some(node.output()) }).await;
        for target in ["openraft", "hyper", "quorate::http"] {
            assert!(output.contains(target), "nothing was printed by {target}, so this has shown nothing");
        }
        scanner.finds_nothing_in("the output", output.as_bytes());
        printed += output.len();
        let stored = scan_folder(&scanner, &node.settings.data_dir);
        assert!(stored > 1_000);
    }
    println!("{printed} bytes of output and all data directories hold no secret");

    // And if there were one, it would be found: planted in a place that was just scanned.
    let planted = cluster.nodes[0].settings.data_dir.join("planted");
    std::fs::write(&planted, format!("x{}", &held[8].1[3..19])).unwrap();
    assert_eq!(scanner.found_in(&std::fs::read(planted).unwrap()).first(), Some(&"the token of secret-room-8"));
}
