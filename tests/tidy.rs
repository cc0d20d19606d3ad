//! Reads the source, and checks what neither the compiler nor clippy checks: the direction of imports, the purity of
//! the domain, and the places of modules and tests. `.clippy.toml` bans single functions and types.
//!
//! A check that can't fail proves nothing, so each rule is tried on code that breaks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// `client` is a branch of its own in the picture, with nothing of the server below it.
const BELOW_CLIENT: [&str; 3] = ["wire", "random", "domain"];

/// Words that don't belong in the domain: two nodes could get different results, or a test would have to wait.
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

/// The parts of `std` that reach the outside.
const OUTSIDE: [&str; 3] = ["io", "fs", "net"];

/// A module of the crate, or a part of one: `["http", "router"]`. The crate itself is `[]`.
type Module = Vec<String>;

/// One file below `src`.
struct Source {
    /// Its path below `src`, with `/`.
    path: String,
    module: Module,
    text: String,
    /// All paths that the code names, such as `["crate", "wire", "Won"]`. Test code doesn't count.
    paths: Vec<Vec<String>>,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        let is_test_code = module.iter().any(|part| part.ends_with("tests"));
        let code: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut paths = Vec::new();
        if !is_test_code {
            collect_paths(code, &[], &mut paths);
        }
        let module = if path == "lib.rs" { Vec::new() } else { module };
        Source { path: path.to_owned(), module, text: text.to_owned(), paths }
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

/// Adds all paths in `code`, and all single words. Lists of imports are written out. Items with `#[cfg(test)]` are left
/// out.
fn collect_paths(code: TokenStream, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let is_punct = |at: usize, c: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == c);
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(_) if is_punct(at, '#') && is_cfg_test(tokens.get(at + 1)) => {
                let ends = |token: &TokenTree| match token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    token => token.to_string() == ";",
                };
                at = tokens[at..].iter().position(ends).map_or(tokens.len(), |end| at + end + 1);
            }
            TokenTree::Group(group) => {
                collect_paths(group.stream(), &[], found);
                at += 1;
            }
            TokenTree::Ident(word) => {
                let mut path = [prefix, &[word.to_string()]].concat();
                at += 1;
                while is_punct(at, ':') && is_punct(at + 1, ':') {
                    match tokens.get(at + 2) {
                        Some(TokenTree::Ident(word)) => path.push(word.to_string()),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                            collect_paths(group.stream(), &path, found);
                            path.clear();
                        }
                        _ => break,
                    }
                    at += 3;
                }
                if !path.is_empty() {
                    found.push(path);
                }
            }
            _ => at += 1,
        }
    }
}

fn is_cfg_test(token: Option<&TokenTree>) -> bool {
    token.is_some_and(|token| token.to_string().replace(' ', "") == "[cfg(test)]")
}

/// Reads the rows of the picture in the crate's documentation. A line is like
///
/// ```text
/// //! 5  http                     client         the edges: JSON in, JSON out
/// ```
///
/// At least two spaces stand between the row, its modules and what they are for. A `|` only draws the branch.
fn rows_of_the_picture(lib: &str) -> BTreeMap<String, u8> {
    let mut rows = BTreeMap::new();
    for line in lib.lines().skip_while(|line| *line != "//! ```text").skip(1).take_while(|line| *line != "//! ```") {
        let parts: Vec<&str> =
            line.trim_start_matches("//!").split("  ").map(str::trim).filter(|part| !part.is_empty()).collect();
        let [row, modules @ .., _purpose] = parts.as_slice() else { panic!("this is no row: {line}") };
        let row: u8 = row.parse().unwrap_or_else(|_| panic!("a row starts with its number: {line}"));
        for module in modules.iter().filter(|module| **module != "|") {
            let is_name = module.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(is_name, "{module:?} is no module: {line}");
            assert!(rows.insert((*module).to_owned(), row).is_none(), "{module} is in the picture twice");
        }
    }
    assert!(rows.len() >= 10, "the picture has too few modules: {rows:?}");
    rows
}

/// A module may use the modules in lower rows, and itself.
fn imports_that_go_up(source: &Source, rows: &BTreeMap<String, u8>) -> Vec<String> {
    // The crate's own file only lists the modules.
    let Some(own) = source.module.first() else { return Vec::new() };
    let Some(own_row) = rows.get(own) else {
        return vec![format!("{}: {own} is not in the picture in src/lib.rs", source.path)];
    };
    let mut wrong = Vec::new();
    for path in &source.paths {
        let Some(used) = absolute(&source.module, path).and_then(|target| target.first().cloned()) else { continue };
        let allowed = match rows.get(&used) {
            _ if used == *own => true,
            None => false,
            Some(_) if own == "client" => BELOW_CLIENT.contains(&used.as_str()),
            Some(row) => row < own_row,
        };
        if !allowed {
            wrong.push(format!("{}: {own} may not use {used}", source.path));
        }
    }
    wrong
}

/// What a path stands for when it is named in `module`: `super::error::HttpError` in `http::router` is
/// `["http", "error", "HttpError"]`. `None` if it isn't in this crate, or is relative to the module itself.
fn absolute(module: &Module, path: &[String]) -> Option<Module> {
    let mut base = match path[0].as_str() {
        "crate" | "quorate" => Vec::new(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    let mut rest = &path[1..];
    while let [first, others @ ..] = rest
        && first == "super"
    {
        base.pop();
        rest = others;
    }
    (!rest.is_empty()).then(|| [base.as_slice(), rest].concat())
}

/// Files of one folder that import each other, directly or through others.
///
/// If a name is imported from a parent module that re-exports it, the import counts as one from the sibling that
/// defines the name.
fn cycles(sources: &[Source]) -> Vec<String> {
    let known: BTreeSet<&Module> = sources.iter().map(|source| &source.module).collect();
    // From a name in a parent to the child that defines it.
    let mut passed_on: BTreeMap<Module, Module> = BTreeMap::new();
    for source in sources {
        for path in &source.paths {
            let child = [source.module.as_slice(), &path[..1]].concat();
            if path.len() > 1 && known.contains(&child) {
                passed_on.insert([source.module.as_slice(), &path[path.len() - 1..]].concat(), child);
            }
        }
    }
    // For each folder, which of its parts imports which.
    let mut folders: BTreeMap<Module, BTreeSet<(String, String)>> = BTreeMap::new();
    for source in sources {
        for target in source.paths.iter().filter_map(|path| absolute(&source.module, path)) {
            let Some(defined_in) = (1..=target.len()).rev().find_map(|length| {
                let start = target[..length].to_vec();
                passed_on.get(&start).cloned().or_else(|| known.contains(&start).then_some(start))
            }) else {
                continue;
            };
            let shared = source.module.iter().zip(&defined_in).take_while(|(own, other)| own == other).count();
            if let (Some(from), Some(to)) = (source.module.get(shared), defined_in.get(shared)) {
                let imports = folders.entry(defined_in[..shared].to_vec()).or_default();
                imports.insert((from.clone(), to.clone()));
            }
        }
    }
    let mut found = Vec::new();
    for (folder, imports) in folders {
        let on_a_cycle = imports.iter().filter(|(from, to)| reaches(&imports, to, from));
        found.extend(on_a_cycle.map(|(from, to)| format!("src/{}: {from} imports {to}", folder.join("/"))));
    }
    found
}

/// Whether `from` imports `to`, directly or through others.
fn reaches(imports: &BTreeSet<(String, String)>, from: &str, to: &str) -> bool {
    let mut reached = BTreeSet::from([from]);
    loop {
        let next: BTreeSet<&str> =
            imports.iter().filter(|(from, _)| reached.contains(from.as_str())).map(|(_, to)| to.as_str()).collect();
        let before = reached.len();
        reached.extend(next);
        if reached.contains(to) || reached.len() == before {
            return reached.contains(to);
        }
    }
}

fn impurities(source: &Source) -> Vec<String> {
    if source.module.first().is_none_or(|module| module != "domain") {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for path in &source.paths {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let is_outside = match parts.as_slice() {
            // Hashing implements this trait of `std::io`, which has no way to the outside.
            ["std", "io", "Write" | "Result", ..] => false,
            ["std", part, ..] => OUTSIDE.contains(part),
            _ => false,
        };
        if is_outside || parts.iter().any(|part| NOT_IN_DOMAIN.contains(part)) {
            wrong.push(format!("{}: {} has no place in the domain", source.path, path.join("::")));
        }
    }
    wrong
}

/// Modules and tests that are not in the expected file, and tests that never run. rustfmt puts each of these on one
/// line.
fn misplaced(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in source.text.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        let reason = match words.as_slice() {
            [.., "mod", name, "{"] if name.ends_with("tests") => "tests belong in a file of their own",
            [first, ..] if first.starts_with("#[path") => "a module's file is found by its name",
            [first, ..] if first.starts_with("#[ignore") => "a test that never runs proves nothing",
            _ => continue,
        };
        wrong.push(format!("{}: {line}: {reason}", source.path));
    }
    wrong
}

#[track_caller]
fn assert_none(mut wrong: Vec<String>) {
    wrong.dedup();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn rows() -> BTreeMap<String, u8> {
    rows_of_the_picture(include_str!("../src/lib.rs"))
}

#[test]
fn the_picture_shows_exactly_the_modules_of_the_crate() {
    let modules: BTreeSet<String> =
        sources().into_iter().filter_map(|source| source.module.into_iter().next()).collect();
    assert_eq!(rows().into_keys().collect::<BTreeSet<_>>(), modules);
}

#[test]
fn imports_only_go_down() {
    let rows = rows();
    let is_caught = |path, text| !imports_that_go_up(&Source::new(path, text), &rows).is_empty();
    for (path, text) in [
        ("domain/room.rs", "use crate::clock::Clock;"),
        ("codec.rs", "use crate::raft_types::Entry;"),
        ("codec.rs", "use super::raft_types::Entry;"),
        ("storage.rs", "fn f() { super::peer::g() }"),
        ("storage/log.rs", "fn f() { super::super::peer::g() }"),
        ("service/forward.rs", "use crate::{domain::Room, http::router};"),
        ("service/forward.rs", "fn f() { let x = crate::node::start(); }"),
        ("client/caller.rs", "use crate::codec::encode;"),
        ("client/caller.rs", "use crate::service::RoomService;"),
        ("service/forward.rs", "fn f() { info!(\"{}\", crate::node::NAME); }"),
        ("http/router.rs", "use crate::client::Client;"),
        ("novelty.rs", ""),
        ("node.rs", "use crate::novelty::Thing;"),
    ] {
        assert!(is_caught(path, text), "{path}: {text}");
    }
    for (path, text) in [
        ("service/forward.rs", "use crate::{domain::Room, service::secrets, peer};"),
        ("storage/log/store.rs", "use super::super::error::StorageError;"),
        ("client/caller.rs", "use crate::{wire, client::error, random, domain::RoomId};"),
        ("codec.rs", "// use crate::node::Node;\n#[cfg(test)] mod tests { use crate::node::Node; }"),
        ("codec.rs", "const A: &str = \"crate::node::Node\";"),
        ("codec/tests.rs", "use crate::node::Node;"),
        ("main.rs", "use quorate::cli;"),
    ] {
        assert!(!is_caught(path, text), "{path}: {text}");
    }
    assert_none(sources().iter().flat_map(|source| imports_that_go_up(source, &rows)).collect());
}

#[test]
fn no_two_files_of_a_folder_import_each_other() {
    let is_caught = |files: &[(&str, &str)]| {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        !cycles(&sources).is_empty()
    };
    let parent = ("http.rs", "mod a; mod b; mod c; pub use b::Thing;");
    for files in [
        [parent, ("http/a.rs", "use super::b::Thing;"), ("http/b.rs", "use crate::http::a;"), ("http/c.rs", "")],
        [parent, ("http/a.rs", "use super::b::X;"), ("http/b.rs", "use super::c;"), ("http/c.rs", "use super::a::Y;")],
        // Through the parent, and from a part of a part.
        [parent, ("http/a.rs", "use super::Thing;"), ("http/b.rs", "use super::a::Y;"), ("http/c.rs", "")],
        [parent, ("http/a/x.rs", "use crate::http::b;"), ("http/b.rs", "use super::a::Y;"), ("http/a.rs", "mod x;")],
    ] {
        assert!(is_caught(&files), "{files:?}");
    }
    for files in [
        [parent, ("http/a.rs", "use super::{b, c};"), ("http/b.rs", "use super::c;"), ("http/c.rs", "")],
        [parent, ("http/a.rs", "use super::b;"), ("http/b.rs", "#[cfg(test)] use super::a;"), ("http/c.rs", "")],
        [parent, ("http/a.rs", "use super::b;"), ("http/b/tests.rs", "use crate::http::a;"), ("http/b.rs", "")],
    ] {
        assert!(!is_caught(&files), "{files:?}");
    }
    assert_none(cycles(&sources()));
}

#[test]
fn the_domain_is_pure() {
    let is_caught = |text| !impurities(&Source::new("domain/room.rs", text)).is_empty();
    for text in [
        "use std::time::{Duration, Instant};",
        "fn f() { std::time::SystemTime::now(); }",
        "use std::collections::{BTreeMap, HashMap};",
        "fn f(x: std::collections::HashSet<u8>) {}",
        "fn f() { rand::random() }",
        "use tokio::sync::Mutex;",
        "use std::fs;",
        "use std::{fmt, net::IpAddr};",
        "use std::io::Read;",
        "const SHARE: f64 = 1;",
        "fn f(x: f32) {}",
        "#[cfg(test)] mod a { } async fn f() {}",
    ] {
        assert!(is_caught(text), "{text}");
    }
    for text in [
        "use std::time::Duration; // no Instant, no HashMap, no f64",
        "#[error(\"f64 of tokio\")] struct E;",
        "impl std::io::Write for HashWriter<'_> { fn f() -> std::io::Result<()> { g() } }",
        "#[cfg(test)]\nmod tests { use std::collections::HashMap; }",
    ] {
        assert!(!is_caught(text), "{text}");
    }
    assert_none(sources().iter().flat_map(impurities).collect());
}

#[test]
fn modules_and_tests_are_in_the_expected_files() {
    let is_caught = |text| !misplaced(&Source::new("service.rs", text)).is_empty();
    for text in [
        "#[cfg(test)]\nmod tests {\n}",
        "#[cfg(test)]\npub(crate) mod fuzz_tests {\n}",
        "#[path = \"elsewhere.rs\"]\nmod forward;",
        "#[test]\n#[ignore]\nfn f() {}",
        "#[test]\n#[ignore = \"slow\"]\nfn f() {}",
    ] {
        assert!(is_caught(text), "{text}");
    }
    for text in ["#[cfg(test)]\nmod tests;", "pub mod path {\n}", "// mod tests"] {
        assert!(!is_caught(text), "{text}");
    }
    assert_none(sources().iter().flat_map(misplaced).collect());
}

/// The crates of a build with these features, direct or not.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]).args(features);
    let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo has built this test, so it runs");
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
        assert!(all.contains(name), "{name} is no longer a crate of the server");
        assert!(!client.contains(name), "{name} comes with the client");
    }
}

#[test]
fn a_picture_that_cannot_be_read_is_an_error() {
    let picture = |rows: &str| format!("//! A picture:\n//!\n//! ```text\n{rows}\n//! ```\n");
    let many = "//! 1  a  b  c  d  e  |  f   what they are for\n//! 0  g  h  i  j   more of them";
    let rows = rows_of_the_picture(&picture(many));
    assert_eq!((rows.len(), rows["f"], rows["g"]), (10, 1, 0));
    for wrong in ["", "//! 2", "//! http  what it is for", "//! 2  http router  what they are for", "//! 2  a  again"] {
        let text = picture(&format!("{many}\n{wrong}"));
        assert!(std::panic::catch_unwind(|| rows_of_the_picture(&text)).is_err(), "{wrong}");
    }
    assert!(std::panic::catch_unwind(|| rows_of_the_picture("//! No picture.")).is_err());
}

#[test]
fn paths_are_found_in_code_only_and_written_out() {
    let text = r##"
        use a::{b, c::{d, e as f, *}, self};
        g::<h::I>(); // comment::of::code
        let text = "text::in::quotes"; let raw = r#"raw " { text::too"#; let c = '"'; let e: &'static str = x::Y;
        /* block::comment */ #[cfg(test)] const A: u8 = test::A; mod m { #[cfg(test)] fn t() { test::t() } fn r() { u::V } }
    "##;
    let mut found = Vec::new();
    collect_paths(text.parse().unwrap(), &[], &mut found);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).filter(|path| path.contains("::")).collect();
    assert_eq!(found, ["a::b", "a::c::d", "a::c::e", "a::c::as", "a::c::f", "a::self", "h::I", "x::Y", "u::V"]);
}

#[test]
fn the_planted_bugs_still_apply() {
    const PATCH: &str = "tests/planted/hooks.patch";
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Without a repository of its own, the tree may be a folder in another one. There git would skip every path.
    let is_repository = tree.join(".git").exists();
    let (program, arguments) = match is_repository {
        true => ("git", vec!["apply", "--check", PATCH]),
        false => ("patch", vec!["--dry-run", "--force", "-p1", "--input", PATCH]),
    };
    let checked = Command::new(program).args(arguments).current_dir(tree).output();
    let checked = checked.unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    assert!(
        checked.status.success(),
        "{PATCH} does not fit the source any more. Refresh it as tests/planted/README.md says, under \"Refresh the \
         patch\".\n{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
}
