use super::*;

#[test]
fn the_welcome_is_short_and_can_be_pasted() {
    let text = welcome("http://127.0.0.1:7400");
    assert!(text.lines().count() <= 8, "{text}");
    for path in ["/elections/hello-world", "/campaign", "/renew"] {
        assert!(text.contains(path), "{text}");
    }
    // A shell function replaces curl: it answers a campaign, and prints the arguments of every other call.
    let curl = r#"curl() { case "$*" in */campaign*) echo '{"leader_token":"abc_-1","x":1}';; *) echo "$*";; esac; }"#;
    let pasted = text.lines().filter(|line| line.starts_with("  "));
    let script: Vec<&str> = std::iter::once(curl).chain(pasted).collect();
    let shell = std::process::Command::new("sh").args(["-eu", "-c", &script.join("\n")]).output().unwrap();
    let printed = String::from_utf8(shell.stdout).unwrap();
    assert!(shell.status.success() && printed.contains(r#"/renew -d {"leader_token":"abc_-1"}"#), "{printed}");
}
