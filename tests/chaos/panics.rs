//! A task that panics takes nobody with it, and nobody asks clients and observers how they ended. So panics are counted
//! as they happen. They do not end the process, which would leave nodes behind.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What the threads are called whose panics count. Other tests of this process have threads of their own, and a panic
/// of the one that runs the lab is a failure anyhow.
pub const THREADS: &str = "lab";

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// From now on panics of these threads are counted, and printed as they were.
pub fn count() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if std::thread::current().name() == Some(THREADS) {
            COUNT.fetch_add(1, Ordering::SeqCst);
        }
    }));
}

/// What is to be said of those since this was asked last, if there were any.
pub fn trouble() -> Option<String> {
    let count = COUNT.swap(0, Ordering::SeqCst);
    (count > 0).then(|| format!("{count} panics of the lab's own tasks, see above"))
}
