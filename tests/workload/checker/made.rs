//! Histories made by hand, in milliseconds, in one room unless another is named.

use super::super::history::{
    Answer, Asked, Attempt, Fault, History, LEASE, MILLI, Moment, Rest, SECOND, Sample, Seen, Stop, WatchEvent,
};

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

    fn attempt(mut self, holder: &str, asked: Asked, t0: u64, t1: Option<u64>, answer: Answer) -> Self {
        let status = match answer {
            Answer::Ok(_) => 200,
            Answer::NotHolder => 404,
            Answer::No | Answer::Unknown => 0,
        };
        self.history.attempts.push(Attempt {
            client: 0,
            holder: holder.into(),
            attempt: 0,
            node: self.node,
            room: self.room,
            asked,
            t0: t0 * MILLI,
            t1: t1.map(|t1| t1 * MILLI),
            hangs_up: t0 * MILLI + 2 * SECOND,
            waits: 0,
            status,
            retry_after: None,
            answer,
        });
        self
    }

    pub fn won(self, holder: &str, term: u64, t0: u64, t1: u64) -> Self {
        let answer = Answer::Ok(Seen::Won { term, valid_for: LEASE });
        self.attempt(holder, Asked::Campaign, t0, Some(t1), answer)
    }

    pub fn renewed(self, holder: &str, asked: u64, answered: u64, t0: u64, t1: u64) -> Self {
        let answer = Answer::Ok(Seen::Won { term: answered, valid_for: LEASE });
        self.attempt(holder, Asked::Renew { term: asked }, t0, Some(t1), answer)
    }

    pub fn campaign_unknown(self, holder: &str, t0: u64) -> Self {
        self.attempt(holder, Asked::Campaign, t0, None, Answer::Unknown)
    }

    pub fn campaign_no(self, holder: &str, t0: u64, t1: u64) -> Self {
        self.attempt(holder, Asked::Campaign, t0, Some(t1), Answer::No)
    }

    pub fn not_holder(self, holder: &str, term: u64, t0: u64, t1: u64) -> Self {
        self.attempt(holder, Asked::Renew { term }, t0, Some(t1), Answer::NotHolder)
    }

    pub fn resigned(self, holder: &str, term: u64, t0: u64, t1: u64) -> Self {
        self.attempt(holder, Asked::Resign { term }, t0, Some(t1), Answer::Ok(Seen::Resigned { term }))
    }

    pub fn resign_unknown(self, holder: &str, term: u64, t0: u64) -> Self {
        self.attempt(holder, Asked::Resign { term }, t0, None, Answer::Unknown)
    }

    pub fn renew_unknown(self, holder: &str, term: u64, t0: u64) -> Self {
        self.attempt(holder, Asked::Renew { term }, t0, None, Answer::Unknown)
    }

    pub fn read(self, holder: &str, term: u64, t0: u64, t1: u64) -> Self {
        self.attempt("", Asked::Read, t0, Some(t1), Answer::Ok(Seen::Held { holder: holder.into(), term }))
    }

    pub fn read_locally(self, holder: &str, term: u64, t0: u64, t1: u64) -> Self {
        self.attempt("", Asked::LocalRead, t0, Some(t1), Answer::Ok(Seen::Held { holder: holder.into(), term }))
    }

    pub fn read_vacant(self, t0: u64, t1: u64) -> Self {
        self.attempt("", Asked::Read, t0, Some(t1), Answer::Ok(Seen::Vacant))
    }

    pub fn stopped(mut self, term: u64, at: u64) -> Self {
        self.history.stops.push(Stop { term, at: at * MILLI, ran_out: false });
        self
    }

    pub fn event(mut self, stream: u64, at: u64, held: Option<(&str, u64)>) -> Self {
        let held = held.map(|(holder, term)| (holder.to_owned(), term));
        self.history.events.push(WatchEvent { stream, node: self.node, room: self.room, at: at * MILLI, held });
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
