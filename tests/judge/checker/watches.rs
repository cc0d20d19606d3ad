//! A watch stream goes forward: terms rise, an end is told once, and at rest it has shown how the room stands.

use std::collections::BTreeMap;

use super::Violation;
use crate::history::{History, WatchEvent};

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
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::made::Made;

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
}
