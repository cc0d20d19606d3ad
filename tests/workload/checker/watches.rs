//! A watch stream goes forward: terms rise, an end is told once, and at rest it has shown how the room stands. Nothing
//! that lasted is left out: events that come fast may be told as one, and a node that a fault keeps behind catches up in
//! one step, but a lease that lasts for a while, with no fault about, is told by each stream that is open meanwhile.

use std::collections::BTreeMap;

use super::super::history::{History, Moment, SECOND, WatchEvent};
use super::calm::is_calm;
use super::leases::leases;
use super::violation::Violation;

/// A lease, or what a stream was open of it, that no stream leaves out, on one busy machine.
const TOLD_AFTER: Moment = 2 * SECOND;

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
            match (&before.held, &event.held) {
                (Some((_, before)), None) => over = *before,
                (None, None) => violation(format!("a vacancy was told twice: {pair:?}")),
                (Some((_, before)), Some((_, term))) if term < before => violation(format!("back: {pair:?}")),
                (None, Some((_, term))) if *term <= over => violation(format!("{over} was over: {pair:?}")),
                _ => {}
            }
        }
    }
    for stream in &history.rest.open_streams {
        let last = streams.get(stream).and_then(|events| events.last());
        let stands = last.and_then(|event| history.rest.rooms.get(event.room).map(|stands| (event, stands)));
        if let Some((event, stands)) = stands
            && event.held.as_ref().map(|(_, term)| *term) != *stands
        {
            violation(format!("at rest the room is {stands:?}, and the stream's last word was {event:?}"));
        }
    }
    for lease in leases(history) {
        let ends = lease.lasts_until.min(lease.resigned_from.unwrap_or(Moment::MAX));
        if !is_calm(history, lease.won_at, ends) {
            continue;
        }
        for (stream, events) in &streams {
            let (first, last) = (events[0], events[events.len() - 1]);
            let was_open = first.at.max(lease.won_at) + TOLD_AFTER <= ends
                && (last.at >= ends
                    || history.stream_ends.get(stream).is_some_and(|end| *end >= ends)
                    || history.rest.open_streams.contains(stream));
            let tells = |event: &&&WatchEvent| event.held.as_ref().is_some_and(|(_, term)| *term == lease.term);
            let told_in_time = events.iter().find(tells).is_some_and(|event| event.at < ends);
            if first.room == lease.room
                && was_open
                && !told_in_time
                && !is_behind(history, first.node, lease.won_at, ends)
            {
                violation(format!("stream {stream} of node {} did not tell of {lease:?} in time", first.node));
            }
        }
    }
    violations
}

/// Whether a node, by its own reports, had not even applied at the end of a lease what another had at its beginning. It
/// knows of nothing then that it could tell: a raft follower whose answer to a snapshot was swallowed by a fault is sent
/// nothing else for 5 s, also when the fault is over.
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
    fn an_end_that_is_told_twice_is_rejected() {
        let history = Made::new().event(1, 0, Some(("a", 5))).event(1, 1, None).event(1, 2, None).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_change_that_an_open_stream_has_not_told_at_rest_is_rejected() {
        let history = Made::new().event(1, 0, Some(("a", 5))).rest(|rest| {
            rest.rooms = vec![None];
            rest.open_streams = vec![1];
        });
        assert_eq!(check(&history.done()).len(), 1);
    }

    #[test]
    fn a_stream_that_goes_forward_is_accepted_and_each_stream_stands_alone() {
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
    fn a_lease_that_is_told_or_short_or_met_a_fault_or_a_stream_that_ended_is_accepted() {
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
