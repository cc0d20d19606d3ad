//! Reports what happens to one leadership, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use super::emitter::Emitter;
use super::event::{Event, EventName};
use crate::client::{Leadership, LeadershipState, LossReason, Standing};

/// How long the resignation at the end may take. If it fails, the room becomes vacant when the lease ends.
const RELEASE_DEADLINE: Duration = Duration::from_secs(2);

/// Reports the events of one leadership.
pub struct Reporter {
    emitter: Arc<Emitter>,
    /// The node that answered last.
    server: String,
    reported_leader: bool,
}

impl Reporter {
    /// A reporter that has reported nothing yet.
    pub fn new(emitter: Arc<Emitter>, leadership: &Leadership) -> Reporter {
        let server = match &*leadership.state().borrow() {
            LeadershipState::Held(standing) => standing.server.clone(),
            LeadershipState::Lost(_) => String::new(),
        };
        Reporter { emitter, server, reported_leader: false }
    }

    /// Reports that the room was won, and from the second call on that the lease was renewed.
    ///
    /// # Errors
    /// If the event can't be written. [`Reporter::lost`] and [`Reporter::report`] fail for the same reason.
    pub fn held(&mut self, leadership: &Leadership, standing: Standing) -> std::io::Result<()> {
        let Standing { server, expires_at, .. } = standing;
        let before = std::mem::replace(&mut self.server, server.clone());
        let name = if self.reported_leader { EventName::Renewed } else { EventName::Leader };
        if self.reported_leader && before != server {
            let detail = format!("{server} answers instead of {before}");
            let event = Event { from: Some(before), to: Some(server), detail, ..Event::new(EventName::Failover) };
            self.report(leadership, event)?;
        }
        self.reported_leader = true;
        self.report(leadership, Event { expires_at: Some(expires_at), ..Event::new(name) })
    }

    /// Reports that the leadership is over. The detail is for people.
    pub fn lost(&self, leadership: &Leadership, reason: &LossReason, detail: &str) -> std::io::Result<()> {
        self.report(leadership, Event { detail: detail.to_owned(), ..Event::of_loss(reason) })
    }

    /// Reports any other event of the leadership.
    pub fn report(&self, leadership: &Leadership, event: Event) -> std::io::Result<()> {
        self.emitter.emit(&self.server, Some(leadership), event)
    }

    /// Resigns, and reports how that went. A leadership that is lost already can't be given up.
    pub async fn release(&self, leadership: Leadership) {
        if !leadership.is_held() {
            return;
        }
        let term = Some(leadership.term().0);
        let (name, code, detail) = match tokio::time::timeout(RELEASE_DEADLINE, leadership.resign()).await {
            Ok(Ok(())) => (EventName::Released, None, "resigned".to_owned()),
            Ok(Err(error)) => {
                let code = error.code().unwrap_or("not_released").to_owned();
                (EventName::Error, Some(code), format!("not resigned: {error}"))
            }
            Err(_) => {
                let detail = "not resigned: no node answered in time; the room becomes vacant when the lease ends";
                (EventName::Error, Some("not_released".to_owned()), detail.to_owned())
            }
        };
        // A failure is ignored: the process ends now, and its exit code says enough.
        let _ = self.emitter.emit(&self.server, None, Event { term, reason_code: code, detail, ..Event::new(name) });
    }
}
