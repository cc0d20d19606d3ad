//! Sets up trace events: which events are written, in which form, and what is written about a panic.
//!
//! Events go to stderr, as text for a person or as one JSON object per line for a machine. Events of libraries that use
//! the `log` crate go there too.

use std::any::Any;
use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Libraries whose ordinary events mean nothing to an operator. Only their warnings and errors are written, unless the
/// filter names them.
const QUIET_TARGETS: [&str; 4] = ["chunked_wal", "openraft", "raft_log", "sled"];

/// A panic message may contain a value of any size. This much is enough to recognise it.
const PANIC_CHARS_MAX: usize = 500;

/// Starts tracing for the whole process. `directives` is a level, or levels by target.
pub fn start(directives: &str, json: bool) -> Result<(), TelemetryError> {
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|text| text.is_empty());
    // `try_init` also redirects the `log` crate.
    subscriber(directives, json, colours, std::io::stderr)?.try_init().map_err(|_| TelemetryError::AlreadyStarted)?;
    std::panic::set_hook(Box::new(record_panic));
    Ok(())
}

/// Why tracing could not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter can't be parsed.
    #[error("not a trace filter: {0}")]
    Filter(#[from] ParseError),
    /// Other code in this process has set up tracing before.
    #[error("tracing is already set up in this process")]
    AlreadyStarted,
}

fn subscriber<W>(directives: &str, json: bool, colours: bool, writer: W) -> Result<impl Subscriber, ParseError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let events = tracing_subscriber::fmt::layer().with_writer(writer);
    let events: Box<dyn Layer<Registry> + Send + Sync> = match json {
        // All spans, because the outer one names the node and the inner one the request.
        true => Box::new(events.json().flatten_event(true).with_current_span(false).with_span_list(true)),
        false => Box::new(events.with_ansi(colours)),
    };
    Ok(tracing_subscriber::registry().with(events).with(filter(directives)?))
}

fn filter(directives: &str) -> Result<EnvFilter, ParseError> {
    let mut levels = directives.split(',').filter_map(|directive| directive.trim().parse::<LevelFilter>().ok());
    // If the operator asks for errors only, libraries write no warnings either.
    let quiet = levels.next_back().unwrap_or(LevelFilter::OFF).min(LevelFilter::WARN);
    // The last of two directives for one target counts, so the operator's comes last.
    let quiet = QUIET_TARGETS.map(|target| format!("{target}={quiet}")).join(",");
    EnvFilter::try_new(format!("{quiet},{directives}"))
}

/// The panic hook: writes one trace event in place of the standard text on stderr.
fn record_panic(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let panic = panic_text(info.payload());
    if tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!(panic, location, thread, "panicked; this is a bug in quorate");
    } else {
        // Even with tracing off, a process that ends must say why. If stderr is closed, there is no place to say it.
        let _ = writeln!(std::io::stderr(), "panicked at {location}: {panic}");
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").chars().take(PANIC_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
