//! Reads the source, and checks what the compiler doesn't: imports go down, the domain stays pure, the outside
//! is reached in one place, the client is a client alone. Each rule is tried on a line that breaks it, for a check
//! that can't fail proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rows of the picture in the crate's documentation. A module imports from lower rows only.
const ROWS: [(&str, u8); 21] = [
    ("domain", 0),
    ("raft_types", 1),
    ("codec", 1),
    ("clock", 1),
    ("random", 0),
    ("wire", 1),
    ("storage", 2),
    ("peer", 2),
    ("listen", 2),
    ("consensus", 3),
    ("service", 4),
    ("http", 5),
    ("peer_listener", 5),
    ("client", 5),
    ("config", 6),
    ("telemetry", 6),
    ("node", 7),
    ("cli", 8),
    ("main", 9),
    ("lib", 9),
    ("quorate", 9),
];

/// `client` is a branch of its own, with nothing of the server below it.
const BELOW_CLIENT: [&str; 3] = ["wire", "random", "domain"];

/// What could make two nodes differ, or needs a test to wait.
const NOT_IN_DOMAIN: [&str; 16] = [
    "Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "rand",
    "getrandom",
    "uuid",
    "tokio",
    "async",
    "await",
    "thread",
    "env",
    "process",
    "f32",
    "f64",
    "unsafe",
];

/// A file of the crate: what its module is called, and its code without comments and texts.
struct Source {
    /// The path below `src`, with `/`.
    path: String,
    /// The first part of the module's path.
    module: String,
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let first = path.split('/').next().expect("a path has a first part");
        let module = first.strip_suffix(".rs").unwrap_or(first).to_owned();
        Source { path: path.to_owned(), module, code: without_comments_and_texts(text) }
    }

    fn is_test_code(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.contains("tests/")
    }

    /// The code that is in a release.
    fn released(&self) -> String {
        if self.is_test_code() { String::new() } else { without_items(&self.code, "#[cfg(test)]") }
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("src is readable") {
            let path: PathBuf = entry.expect("src is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let read = |path: &PathBuf| {
        let below = path.strip_prefix(&root).expect("it was found there").to_string_lossy().replace('\\', "/");
        Source::new(&below, &fs::read_to_string(path).expect("source is UTF-8"))
    };
    let sources: Vec<_> = files.iter().map(read).collect();
    assert!(sources.len() >= 10, "these are not all the files");
    sources
}

/// Blanks comments, texts and characters, so that only code is left to look at.
fn without_comments_and_texts(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    let starts = |at: usize, what: &str| chars[at..].iter().take(what.len()).copied().eq(what.chars());
    while at < chars.len() {
        let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
        if starts(at, "//") {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            while at < chars.len() && !starts(at, "*/") {
                at += 1;
            }
            at += 2;
        } else if chars[at] == 'r' && !in_word && (starts(at, "r\"") || starts(at, "r#\"") || starts(at, "r##\"")) {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            let end = format!("\"{}", "#".repeat(hashes));
            at += hashes + 2;
            while at < chars.len() && !starts(at, &end) {
                at += 1;
            }
            at += end.len();
        } else if chars[at] == '"' {
            at += 1;
            while at < chars.len() && chars[at] != '"' {
                at += if chars[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
            code.push_str("\"\"");
        } else if chars[at] == '\'' && (starts(at + 1, "\\") || chars.get(at + 2) == Some(&'\'')) {
            at += if starts(at + 1, "\\") { 3 } else { 2 };
            while at < chars.len() && chars[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else {
            code.push(chars[at]);
            at += 1;
        }
    }
    code
}

/// Cuts out each item that begins with `mark`, up to its `;` or the end of its braces.
fn without_items(code: &str, mark: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(start) = rest.find(mark) {
        kept.push_str(&rest[..start]);
        let item = &rest[start + mark.len()..];
        let mut depth = 0_u32;
        let mut end = item.len();
        for (at, c) in item.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ';' || c == '}') {
                end = at + 1;
                break;
            }
        }
        rest = &item[end..];
    }
    kept.push_str(rest);
    kept
}

/// All paths of two or more parts, and all single words, with the braces of imports written out.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut tokens = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphabetic() || c == '_' {
            let mut word = String::from(c);
            while let Some(next) = chars.next_if(|next| next.is_alphanumeric() || *next == '_') {
                word.push(next);
            }
            tokens.push(word);
        } else if c == ':' && chars.next_if_eq(&':').is_some() {
            tokens.push("::".to_owned());
        } else if !c.is_whitespace() {
            tokens.push(c.to_string());
        }
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = path_at(&tokens, at, &[], &mut found);
    }
    found
}

fn is_word(token: &str) -> bool {
    token.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}

/// Reads the path at `at`, if there is one, and says where to go on.
fn path_at(tokens: &[String], mut at: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    if !is_word(&tokens[at]) {
        return at + 1;
    }
    let mut path = prefix.to_vec();
    path.push(tokens[at].clone());
    at += 1;
    while tokens.get(at).is_some_and(|token| token == "::") {
        match tokens.get(at + 1).map(String::as_str) {
            Some("{") => {
                at += 2;
                while at < tokens.len() && tokens[at] != "}" {
                    at = path_at(tokens, at, &path, found);
                }
                return at + 1;
            }
            Some(word) if is_word(word) => {
                path.push(word.to_owned());
                at += 2;
            }
            _ => break,
        }
    }
    found.push(path);
    at
}

fn row(module: &str) -> Option<u8> {
    ROWS.iter().find(|(name, _)| *name == module).map(|(_, row)| *row)
}

/// A module may use what is in lower rows, and itself.
fn imports_that_go_up(source: &Source) -> Vec<String> {
    let Some(own_row) = row(&source.module) else {
        return vec![format!("{}: the module has no row in the picture", source.path)];
    };
    // At the top of the tree `super` is the crate.
    let is_top = !source.path.contains('/');
    let mut wrong = Vec::new();
    for path in paths(&source.released()) {
        let from_root = path[0] == "crate" || path[0] == "quorate" || (is_top && path[0] == "super");
        let Some(used) = path.get(1).filter(|_| from_root) else { continue };
        let allowed = match row(used) {
            _ if *used == source.module => true,
            None => false,
            Some(_) if source.module == "client" => BELOW_CLIENT.contains(&used.as_str()),
            Some(used_row) => used_row < own_row,
        };
        if !allowed {
            wrong.push(format!("{}: {} may not use {used}", source.path, source.module));
        }
    }
    wrong
}

fn impurities(source: &Source) -> Vec<String> {
    if source.module != "domain" {
        return Vec::new();
    }
    // Hashing goes through the one trait of `std::io` that doesn't touch the outside.
    let code = without_items(&source.released(), "impl std::io::Write for HashWriter");
    let mut wrong = Vec::new();
    for path in paths(&code) {
        let outside = path[0] == "std" && path.get(1).is_some_and(|part| ["io", "fs", "net"].contains(&part.as_str()));
        let impure = path.iter().find(|part| NOT_IN_DOMAIN.contains(&part.as_str()));
        if outside || impure.is_some() {
            wrong.push(format!("{}: {} has no place in the domain", source.path, path.join("::")));
        }
    }
    wrong
}

/// What only one file may name: the rest reaches it through that file, where a test can replace it.
fn things_named_elsewhere(source: &Source) -> Vec<String> {
    let all = paths(&source.released());
    let names: BTreeMap<&str, &Vec<String>> =
        all.iter().filter(|path| path.len() > 1).filter_map(|path| Some((path.last()?.as_str(), path))).collect();
    let mut wrong = Vec::new();
    for path in &all {
        // A bare `Instant` is what the file's import says it is.
        let whole = match names.get(path[0].as_str()) {
            Some(import) if path.len() > 1 && path[0] != import[0] => [import.as_slice(), &path[1..]].concat(),
            _ => path.clone(),
        };
        let ends = |end: &[&str]| whole.len() >= end.len() && whole[whole.len() - end.len()..].iter().eq(end);
        let reads_time = ends(&["SystemTime", "now"])
            || (ends(&["Instant", "now"]) && whole[0] != "tokio")
            || ends(&["clock_gettime"]);
        // Threads, and what tokio does on threads, make a simulation's order of events depend on the machine.
        let is_simulated = !["client", "cli", "telemetry", "main"].contains(&source.module.as_str());
        let only_in: &[&str] = match whole[0].as_str() {
            "std" if is_simulated && whole.get(1).is_some_and(|part| part == "thread") => {
                &["clock.rs", "storage/log_store.rs", "storage/files.rs"]
            }
            "tokio" if is_simulated && (ends(&["spawn_blocking"]) || whole.get(1).is_some_and(|part| part == "fs")) => {
                &["storage/disk.rs"]
            }
            "bincode" => &["codec.rs"],
            "rand" | "getrandom" => &["random.rs"],
            // The client has nothing of the server below it, and must count what the server must not: suspends.
            _ if reads_time => &["clock.rs", "client/holder_clock.rs"],
            _ => &[],
        };
        if !only_in.is_empty() && !only_in.contains(&source.path.as_str()) {
            wrong.push(format!("{}: {} belongs into {}", source.path, whole.join("::"), only_in.join(" or ")));
        }
    }
    wrong
}

fn leftovers(source: &Source) -> Vec<String> {
    let code: String = source.code.chars().filter(|c| !c.is_whitespace()).collect();
    ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"]
        .iter()
        .filter(|leftover| code.contains(**leftover))
        .map(|leftover| format!("{}: {leftover} is left over", source.path))
        .collect()
}

fn assert_none(rule: fn(&Source) -> Vec<String>) {
    let mut wrong: Vec<_> = sources().iter().flat_map(rule).collect();
    wrong.dedup();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn is_caught(rule: fn(&Source) -> Vec<String>, path: &str, text: &str) -> bool {
    !rule(&Source::new(path, text)).is_empty()
}

#[test]
fn imports_only_go_down() {
    let rule = imports_that_go_up;
    for (path, text) in [
        ("domain/room.rs", "use crate::clock::Clock;"),
        ("codec.rs", "use crate::raft_types::Entry;"),
        ("codec.rs", "use super::raft_types::Entry;"),
        ("storage.rs", "fn f() { super::peer::g() }"),
        ("service/forward.rs", "use crate::{domain::Room, http::router};"),
        ("service/forward.rs", "fn f() { let x = crate::node::start(); }"),
        ("client/retry.rs", "use crate::codec::encode;"),
        ("client/retry.rs", "use crate::service::RoomService;"),
        ("http/router.rs", "use crate::client::Client;"),
        ("novelty.rs", ""),
        ("node.rs", "use crate::novelty::Thing;"),
    ] {
        assert!(is_caught(rule, path, text), "{path}: {text}");
    }
    for (path, text) in [
        ("service/forward.rs", "use crate::{domain::Room, service::secrets, peer};"),
        ("storage/log_store.rs", "use super::error::StorageError;"),
        ("client/retry.rs", "use crate::{wire, client::error, random, domain::RoomId};"),
        ("codec.rs", "// use crate::node::Node;\n#[cfg(test)] mod tests { use crate::node::Node; }"),
        ("main.rs", "use quorate::cli;"),
    ] {
        assert!(!is_caught(rule, path, text), "{path}: {text}");
    }
    assert_none(rule);
}

#[test]
fn the_domain_is_pure() {
    let rule = impurities;
    for text in [
        "use std::time::{Duration, Instant};",
        "fn f() { std::time::SystemTime::now(); }",
        "use std::collections::{BTreeMap, HashMap};",
        "let x: std::collections::HashSet<u8>;",
        "fn f() { rand::random() }",
        "use tokio::sync::Mutex;",
        "use std::fs;",
        "use std::{fmt, net::IpAddr};",
        "use std::io::Read;",
        "impl std::io::Write for Other { }",
        "const SHARE: f64 = 1;",
        "fn f(x: f32) {}",
        "#[cfg(test)] mod a { } async fn f() {}",
    ] {
        assert!(is_caught(rule, "domain/room.rs", text), "{text}");
    }
    for text in [
        "use std::time::Duration; // no Instant, no HashMap, no f64",
        "#[error(\"f64 of tokio\")] struct E;",
        "impl std::io::Write for HashWriter<'_> { fn f() -> std::io::Result<()> { g() } }",
        "#[cfg(test)]\nmod tests { use std::collections::HashMap; }",
    ] {
        assert!(!is_caught(rule, "domain/room.rs", text), "{text}");
    }
    assert_none(rule);
}

#[test]
fn time_randomness_threads_and_bincode_have_a_file_each() {
    let rule = things_named_elsewhere;
    for text in [
        "fn f() { std::time::SystemTime::now(); }",
        "use std::time::{Duration, Instant}; fn f() { Instant::now(); }",
        "use std::time; fn f() { time::Instant::now(); }",
        "use std::time::SystemTime; fn f() { SystemTime::now(); }",
        "use rustix::time::{ClockId, clock_gettime}; fn f() { clock_gettime(ClockId::Realtime); }",
        "fn f() { rustix::time::clock_gettime(rustix::time::ClockId::Boottime); }",
        "use rand::Rng;",
        "fn f() { rand::random() }",
        "use bincode::Options;",
        "fn f() { bincode::serialize(x) }",
        "fn f() { std::thread::spawn(g); }",
        "use std::thread; fn f() { thread::sleep(d); }",
        "fn f() { tokio::task::spawn_blocking(g); }",
        "use tokio::task::spawn_blocking; fn f() { spawn_blocking(g); }",
        "fn f() { tokio::fs::File::open(path); }",
    ] {
        assert!(is_caught(rule, "service.rs", text), "{text}");
    }
    for text in [
        "use tokio::time::{Duration, Instant}; fn f() { Instant::now(); }",
        "fn f() { tokio::time::Instant::now(); }",
        "use tokio::time; fn f() { time::Instant::now(); }",
        "use tokio::time::Instant; fn f(now: Instant) { let now = Instant::now(); g(now); }",
        "use crate::random::Random; // not rand::",
        "#[cfg(test)] mod tests { fn f() { std::time::Instant::now(); } }",
        "fn f() { tokio::task::spawn(g); }",
    ] {
        assert!(!is_caught(rule, "service.rs", text), "{text}");
    }
    assert!(!is_caught(rule, "codec.rs", "use bincode::Options;"));
    assert!(!is_caught(rule, "random.rs", "use rand::TryRng;"));
    assert!(is_caught(rule, "random.rs", "use bincode::Options;"));
    assert_none(rule);
}

#[test]
fn nothing_is_left_unfinished() {
    let rule = leftovers;
    for text in [
        "fn f() { todo!() }",
        "fn f() { unimplemented!(\"later\") }",
        "fn f() { dbg!(x); }",
        "#[test]\n#[ignore]\nfn f() {}",
        "#[test] #[ignore = \"slow\"] fn f() {}",
        "#[cfg(test)] mod tests { fn f() { todo !() } }",
    ] {
        assert!(is_caught(rule, "service.rs", text), "{text}");
    }
    assert!(!is_caught(rule, "service.rs", "// todo!() in a comment\nconst A: &str = \"dbg!(x)\";"));
    assert_none(rule);
}

/// The crates of a build with these features, whoever brings them.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]).args(features);
    let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs, for it has built this");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("names of crates are ASCII");
    listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_client_alone_brings_nothing_of_the_server() {
    let of_the_server = ["axum", "bincode", "clap", "governor", "openraft", "raft-log", "sled", "toml", "utoipa"];
    let all = crates(&[]);
    let client = crates(&["--no-default-features", "--features", "client"]);
    assert!(client.contains("reqwest"), "{client:?}");
    for name in of_the_server {
        assert!(all.contains(name), "{name} isn't what it is called any more");
        assert!(!client.contains(name), "{name} comes with the client");
    }
}

#[test]
fn code_is_told_from_comments_texts_and_characters() {
    let text = r##"
        let a = "text // not a comment { "; // comment { "
        let b = 'x'; let c = '"'; let d = '\''; let e: &'static str = r#"raw " { text"#;
        /* block { */ let last = b'{';
    "##;
    let code = without_comments_and_texts(text);
    for gone in ["text", "comment", "raw", "block", "{", "x'"] {
        assert!(!code.contains(gone), "{gone} in {code}");
    }
    for kept in ["let a", "let b", "let c", "let d", "'static str", "let last"] {
        assert!(code.contains(kept), "{kept} not in {code}");
    }
}

#[test]
fn imports_are_written_out() {
    let written_out = paths("use a::{b, c::{d, e as f, *}, self}; g::<h::I>();");
    for path in ["a::b", "a::c::d", "a::c::e", "a::self", "h::I"] {
        assert!(written_out.contains(&path.split("::").map(str::to_owned).collect()), "{path} in {written_out:?}");
    }
}
