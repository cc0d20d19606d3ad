use std::sync::{Arc, Mutex};

use tracing::{debug, info, warn};
use tracing_log::log;

use super::*;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn captured(directives: &str, json: bool, work: impl FnOnce()) -> String {
    let sink = Captured::default();
    let writer = sink.clone();
    let subscriber = subscriber(directives, json, false, move || writer.clone()).unwrap();
    // Fails if another test has done it before, which has the same effect.
    let _ = tracing_log::LogTracer::init();
    tracing::subscriber::with_default(subscriber, work);
    String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
}

#[test]
fn json_events_are_one_object_per_line_with_their_spans() {
    let text = captured("info", true, || {
        let span = tracing::info_span!("node", node = "n1");
        span.in_scope(|| info!(room = "a\nb", "granted"));
    });
    let event: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert_eq!((&event["message"], &event["room"]), (&"granted".into(), &"a\nb".into()));
    assert_eq!(event["spans"][0]["node"], "n1");
}

#[test]
fn text_without_colours_has_no_escape_codes() {
    let text = captured("info", false, || info!("granted"));
    assert!(text.contains("granted") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn libraries_are_quiet_unless_the_filter_names_them() {
    let speak = || {
        info!(target: "openraft", "everyday");
        warn!(target: "openraft", "trouble");
        debug!(target: "quorate", "ours");
    };
    let text = captured("debug", false, speak);
    assert!(text.contains("trouble") && text.contains("ours") && !text.contains("everyday"), "{text}");
    assert!(captured("info,openraft=info", false, speak).contains("everyday"));
    assert_eq!(captured("error", false, speak), "");
    assert_eq!(captured("off", false, speak), "");
}

#[test]
fn events_of_the_log_crate_follow_the_same_rules() {
    let text = captured("info", false, || {
        log::info!(target: "raft_log::dump", "everyday");
        log::warn!(target: "raft_log::dump", "trouble");
        log::info!(target: "another", "news");
    });
    assert!(text.contains("trouble") && text.contains("news") && !text.contains("everyday"), "{text}");
}

#[test]
fn a_long_panic_message_is_cut() {
    assert_eq!(panic_text(&"broken"), "broken");
    assert_eq!(panic_text(&String::from("broken")), "broken");
    assert_eq!(panic_text(&7), "no message");
    assert_eq!(panic_text(&"ä".repeat(1000)).chars().count(), PANIC_CHARS_MAX);
}
