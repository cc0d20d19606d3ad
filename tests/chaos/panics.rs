//! Counts panics of the lab's tasks. A panic ends only its own task, and no code asks every task how it ended. The
//! process goes on all the same, because its end would leave nodes running.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The name of the threads whose panics count. Other tests in this process have threads of their own. A panic of the
/// thread that runs the lab fails the test anyway.
pub const THREADS: &str = "lab";

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Starts to count panics of these threads. They are printed as before.
pub fn count() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if std::thread::current().name() == Some(THREADS) {
            COUNT.fetch_add(1, Ordering::SeqCst);
        }
    }));
}

/// Reports the panics since the last call, if there were any.
pub fn trouble() -> Option<String> {
    let count = COUNT.swap(0, Ordering::SeqCst);
    (count > 0).then(|| format!("{count} panics of the lab's own tasks, see above"))
}
