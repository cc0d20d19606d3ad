//! Builds small histories for tests. All moments are in milliseconds. Everything happens in room 0 at node 0, until
//! another one is named.

use super::super::history::{
    Answer, Asked, Attempt, Fault, History, LEASE, MILLI, Moment, Rest, SECOND, Sample, Seen, Stop, WatchEvent,
};

/// A history that is being built.
pub struct Made {
    history: History,
    room: usize,
    node: usize,
}

impl Made {
    pub fn new() -> Self {
        Self { history: History::default(), room: 0, node: 0 }
    }

    pub fn done(self) -> History {
        self.history
    }

    pub fn in_room(mut self, room: usize) -> Self {
        self.room = room;
        self
    }

    pub fn on_node(mut self, node: usize) -> Self {
        self.node = node;
        self
    }

    fn attempt(mut self, holder: &str, asked: Asked, sent_at: u64, answered_at: Option<u64>, answer: Answer) -> Self {
        let status = match answer {
            Answer::Ok(_) => 200,
            Answer::NotHolder => 404,
            Answer::NothingDone | Answer::Unknown => 0,
        };
        self.history.attempts.push(Attempt {
            client: 0,
            holder: holder.into(),
            attempt: 0,
            node: self.node,
            room: self.room,
            asked,
            sent_at: sent_at * MILLI,
            answered_at: answered_at.map(|answered_at| answered_at * MILLI),
            hangs_up: sent_at * MILLI + 2 * SECOND,
            waits: 0,
            status,
            retry_after: None,
            answer,
        });
        self
    }

    pub fn won(self, holder: &str, term: u64, sent_at: u64, answered_at: u64) -> Self {
        let answer = Answer::Ok(Seen::Won { term, valid_for: LEASE });
        self.attempt(holder, Asked::Campaign, sent_at, Some(answered_at), answer)
    }

    pub fn renewed(self, holder: &str, asked: u64, answered: u64, sent_at: u64, answered_at: u64) -> Self {
        let answer = Answer::Ok(Seen::Won { term: answered, valid_for: LEASE });
        self.attempt(holder, Asked::Renew { term: asked }, sent_at, Some(answered_at), answer)
    }

    pub fn campaign_unknown(self, holder: &str, sent_at: u64) -> Self {
        self.attempt(holder, Asked::Campaign, sent_at, None, Answer::Unknown)
    }

    pub fn campaign_without_effect(self, holder: &str, sent_at: u64, answered_at: u64) -> Self {
        self.attempt(holder, Asked::Campaign, sent_at, Some(answered_at), Answer::NothingDone)
    }

    pub fn not_holder(self, holder: &str, term: u64, sent_at: u64, answered_at: u64) -> Self {
        self.attempt(holder, Asked::Renew { term }, sent_at, Some(answered_at), Answer::NotHolder)
    }

    pub fn resigned(self, holder: &str, term: u64, sent_at: u64, answered_at: u64) -> Self {
        self.attempt(holder, Asked::Resign { term }, sent_at, Some(answered_at), Answer::Ok(Seen::Resigned { term }))
    }

    pub fn resign_unknown(self, holder: &str, term: u64, sent_at: u64) -> Self {
        self.attempt(holder, Asked::Resign { term }, sent_at, None, Answer::Unknown)
    }

    pub fn renew_unknown(self, holder: &str, term: u64, sent_at: u64) -> Self {
        self.attempt(holder, Asked::Renew { term }, sent_at, None, Answer::Unknown)
    }

    pub fn read(self, holder: &str, term: u64, sent_at: u64, answered_at: u64) -> Self {
        self.attempt(
            "",
            Asked::Read,
            sent_at,
            Some(answered_at),
            Answer::Ok(Seen::Occupied { holder: holder.into(), term }),
        )
    }

    pub fn read_locally(self, holder: &str, term: u64, sent_at: u64, answered_at: u64) -> Self {
        self.attempt(
            "",
            Asked::LocalRead,
            sent_at,
            Some(answered_at),
            Answer::Ok(Seen::Occupied { holder: holder.into(), term }),
        )
    }

    pub fn read_vacant(self, sent_at: u64, answered_at: u64) -> Self {
        self.attempt("", Asked::Read, sent_at, Some(answered_at), Answer::Ok(Seen::Vacant))
    }

    pub fn stopped(mut self, term: u64, at: u64) -> Self {
        self.history.stops.push(Stop { term, at: at * MILLI, ran_out: false });
        self
    }

    pub fn event(mut self, stream: u64, at: u64, holder: Option<(&str, u64)>) -> Self {
        let holder = holder.map(|(name, term)| (name.to_owned(), term));
        self.history.events.push(WatchEvent { stream, node: self.node, room: self.room, at: at * MILLI, holder });
        self
    }

    pub fn stream_end(mut self, stream: u64, at: u64) -> Self {
        self.history.stream_ends.insert(stream, at * MILLI);
        self
    }

    pub fn sample_at(mut self, at: u64, applied_index: u64) -> Self {
        let (node, state_digest) = (self.node, applied_index.to_string());
        self.history.samples.push(Sample { node, at: at * MILLI, applied_index, state_digest });
        self
    }

    pub fn sample(mut self, applied_index: u64, digest: &str) -> Self {
        self.history.samples.push(Sample { node: self.node, at: 0, applied_index, state_digest: digest.into() });
        self
    }

    pub fn fault(mut self, from: u64, undone: u64, healed: Option<u64>, without_quorum: &[usize]) -> Self {
        self.history.faults.push(Fault {
            name: "made".into(),
            from: from * MILLI,
            undone: undone * MILLI,
            healed: healed.map(|healed: Moment| healed * MILLI),
            without_quorum: without_quorum.to_vec(),
            cut: from * MILLI,
        });
        self
    }

    pub fn rest(mut self, change: impl FnOnce(&mut Rest)) -> Self {
        change(&mut self.history.rest);
        self
    }
}
