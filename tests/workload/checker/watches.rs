//! A watch stream goes forward: terms rise, the end of a lease is shown once, and at rest the last event is the state
//! of the room. Events in quick succession may be shown as one, and a node that a fault has kept behind catches up in
//! one step. But a lease that lasts for a while without a fault is shown by each stream that is open meanwhile.

use std::collections::BTreeMap;

use super::super::history::{History, Moment, SECOND, WatchEvent};
use super::calm::is_calm;
use super::leases::leases;
use super::violation::Violation;

/// A stream that was open during this much of a lease must have shown it. Enough for a busy machine.
const SHOWN_AFTER: Moment = 2 * SECOND;

pub fn check(history: &History) -> Vec<Violation> {
    let mut streams = BTreeMap::<u64, Vec<&WatchEvent>>::new();
    for event in &history.events {
        streams.entry(event.stream).or_default().push(event);
    }
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "watch order", what });
    for events in streams.values() {
        let mut over = 0;
        for pair in events.windows(2) {
            let [before, event] = pair else { unreachable!("windows of two") };
            match (&before.holder, &event.holder) {
                (Some((_, before)), None) => over = *before,
                (None, None) => violation(format!("a vacancy was shown twice: {pair:?}")),
                (Some((_, before)), Some((_, term))) if term < before => violation(format!("the term fell: {pair:?}")),
                (None, Some((_, term))) if *term <= over => {
                    violation(format!("the lease {over} was over, and came back: {pair:?}"))
                }
                _ => {}
            }
        }
    }
    for stream in &history.rest.open_streams {
        let last = streams.get(stream).and_then(|events| events.last());
        let stands = last.and_then(|event| history.rest.rooms.get(event.room).map(|stands| (event, stands)));
        if let Some((event, stands)) = stands
            && event.holder.as_ref().map(|(_, term)| *term) != *stands
        {
            violation(format!("at rest the room is {stands:?}, and the stream's last event was {event:?}"));
        }
    }
    for lease in leases(history) {
        let ends = lease.lasts_until.min(lease.resigned_from.unwrap_or(Moment::MAX));
        if !is_calm(history, lease.won_at, ends) {
            continue;
        }
        for (stream, events) in &streams {
            let (first, last) = (events[0], events[events.len() - 1]);
            let was_open = first.at.max(lease.won_at) + SHOWN_AFTER <= ends
                && (last.at >= ends
                    || history.stream_ends.get(stream).is_some_and(|end| *end >= ends)
                    || history.rest.open_streams.contains(stream));
            let shows = |event: &&&WatchEvent| event.holder.as_ref().is_some_and(|(_, term)| *term == lease.term);
            let shown_in_time = events.iter().find(shows).is_some_and(|event| event.at < ends);
            if first.room == lease.room
                && was_open
                && !shown_in_time
                && !is_behind(history, first.node, lease.won_at, ends)
            {
                violation(format!("stream {stream} of node {} did not show {lease:?} in time", first.node));
            }
        }
    }
    violations
}

/// Whether a node had not even applied the beginning of a lease when the lease ended, by its own reports. It can't show
/// the lease then. This happens after a fault has dropped the answer of a raft follower to a snapshot: the raft leader
/// sends that node nothing else for 5 s, even if the fault is over.
fn is_behind(history: &History, node: usize, won_at: Moment, ends: Moment) -> bool {
    let before = history.samples.iter().filter(|sample| sample.at <= won_at).map(|sample| sample.applied_index).max();
    let own = history.samples.iter().filter(|sample| sample.node == node && sample.at <= ends);
    own.map(|sample| sample.applied_index).max() < before
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn a_stream_that_goes_back_is_rejected() {
        let history = Made::new().event(1, 0, Some(("b", 6))).event(1, 1, Some(("a", 5))).done();
        assert_eq!(check(&history).len(), 1);
        let history = Made::new().event(1, 0, Some(("a", 5))).event(1, 1, None).event(1, 2, Some(("a", 5))).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn an_end_that_is_shown_twice_is_rejected() {
        let history = Made::new().event(1, 0, Some(("a", 5))).event(1, 1, None).event(1, 2, None).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_change_that_an_open_stream_has_not_shown_at_rest_is_rejected() {
        let history = Made::new().event(1, 0, Some(("a", 5))).rest(|rest| {
            rest.rooms = vec![None];
            rest.open_streams = vec![1];
        });
        assert_eq!(check(&history.done()).len(), 1);
    }

    #[test]
    fn a_stream_that_goes_forward_is_accepted_whatever_another_stream_shows() {
        let history = Made::new()
            .event(1, 0, None)
            .event(1, 1, Some(("a", 5)))
            .event(1, 2, Some(("a", 5)))
            .event(1, 3, Some(("b", 6)))
            .event(1, 4, None)
            .event(2, 5, Some(("a", 5)))
            .rest(|rest| {
                rest.rooms = vec![None];
                rest.open_streams = vec![1];
            });
        assert_eq!(check(&history.done()), []);
    }

    #[test]
    fn a_lease_that_lasted_and_was_left_out_is_rejected() {
        let made = || Made::new().event(1, 0, None).won("a", 5, 10, 20).event(1, 6_000, Some(("b", 6)));
        assert_eq!(check(&made().done()).len(), 1);
        let too_late = Made::new().event(1, 0, None).won("a", 5, 10, 20).event(1, 5_011, Some(("a", 5)));
        assert_eq!(check(&too_late.done()).len(), 1);
        let open = Made::new().event(1, 0, None).won("a", 5, 10, 20).rest(|rest| rest.open_streams = vec![1]);
        assert_eq!(check(&open.done()).len(), 1);
        let knows = Made::new().event(1, 0, None).sample_at(0, 7).on_node(1).sample_at(5, 8);
        let knows = knows.won("a", 5, 10, 20).on_node(0).sample_at(4_000, 9).event(1, 6_000, Some(("b", 6)));
        assert_eq!(check(&knows.done()).len(), 1);
        let silent = Made::new().event(1, 0, None).won("a", 5, 10, 20).stream_end(1, 6_000);
        assert_eq!(check(&silent.done()).len(), 1);
    }

    #[test]
    fn a_lease_may_be_left_out_if_it_was_short_or_disturbed_or_the_stream_had_ended() {
        let told = Made::new().event(1, 0, None).won("a", 5, 10, 20).event(1, 500, Some(("a", 5)));
        assert_eq!(check(&told.event(1, 6_000, None).done()), []);
        let short = Made::new().event(1, 0, None).won("a", 5, 10, 20).resigned("a", 5, 1_900, 1_910);
        assert_eq!(check(&short.event(1, 2_000, Some(("b", 6))).done()), []);
        let ended = Made::new().event(1, 0, None).won("a", 5, 10, 20);
        assert_eq!(check(&ended.done()), []);
        let ended = Made::new().event(1, 0, None).won("a", 5, 10, 20).stream_end(1, 4_000);
        assert_eq!(check(&ended.done()), []);
        let opened_late = Made::new().won("a", 5, 10, 20).event(1, 4_000, None).event(1, 6_000, Some(("b", 6)));
        assert_eq!(check(&opened_late.done()), []);
        let behind = Made::new().event(1, 0, None).sample_at(0, 7).on_node(1).sample_at(5, 8);
        let behind = behind.won("a", 5, 10, 20).on_node(0).sample_at(4_000, 7).event(1, 6_000, Some(("b", 6)));
        assert_eq!(check(&behind.done()), []);
        let fault = Made::new().event(1, 0, None).won("a", 5, 10, 20).event(1, 6_000, Some(("b", 6)));
        assert_eq!(check(&fault.fault(100, 200, Some(300), &[]).done()), []);
        let elsewhere = Made::new().in_room(1).event(1, 0, None).event(1, 6_000, Some(("b", 6)));
        assert_eq!(check(&elsewhere.in_room(0).won("a", 5, 10, 20).done()), []);
    }
}
