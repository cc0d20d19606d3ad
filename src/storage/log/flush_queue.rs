//! The queue to the flush task, and the thread on which that task runs.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::super::blocking::Blocking;
use super::flush::{Flusher, Job};
use super::shared::Shared;
use super::watermark::WatermarkFile;

/// Sends jobs to the flush task. If it is dropped, the task flushes what is left and ends. The drop waits for that.
pub(super) struct FlushQueue {
    /// Unbounded. openraft does not wait for one flush before the next append, but the commands that it appends are
    /// limited where they are admitted. This is `None` only while the queue is being dropped.
    jobs: Option<mpsc::UnboundedSender<Job>>,
    /// `None` if blocking work is done at once: the task then runs on the caller's runtime.
    thread: Option<JoinHandle<()>>,
}

impl FlushQueue {
    /// Starts the flush task. It fails if the operating system gives it no thread.
    pub(super) fn start(shared: Arc<Shared>, watermark: WatermarkFile) -> io::Result<FlushQueue> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let blocking = shared.dir.disk().blocking();
        let flushing = Flusher::new(shared, receiver, watermark).run();
        let thread = match blocking {
            Blocking::OnThreads => Some(start_thread(flushing)?),
            Blocking::AtOnce => {
                tokio::spawn(flushing);
                None
            }
        };
        Ok(FlushQueue { jobs: Some(sender), thread })
    }

    /// Queues a job and doesn't wait for it.
    pub(super) fn send(&self, job: Job) -> io::Result<()> {
        let jobs = self.jobs.as_ref().expect("the sender is there until the queue is dropped");
        // The task is gone only if it panicked. A pending flush that is dropped with its job reports an error.
        jobs.send(job).map_err(|_| task_is_gone())
    }

    /// Queues a job and waits until it is done.
    pub(super) async fn send_and_wait(
        &self,
        job: impl FnOnce(oneshot::Sender<io::Result<()>>) -> Job,
    ) -> io::Result<()> {
        let (done, result) = oneshot::channel();
        self.send(job(done))?;
        result.await.unwrap_or_else(|_| Err(task_is_gone()))
    }
}

impl Drop for FlushQueue {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a simulation flushes in a task")]
fn start_thread(flushing: impl Future<Output = ()> + Send + 'static) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    std::thread::Builder::new().name("log-flush".into()).spawn(move || runtime.block_on(flushing))
}

fn task_is_gone() -> io::Error {
    io::Error::other("the log's flush thread has stopped")
}
