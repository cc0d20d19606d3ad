//! Nodes with the same applied index have the same state. At rest all nodes have the same applied index.

use std::collections::HashMap;

use super::super::history::History;
use super::violation::Violation;

pub fn check(history: &History) -> Vec<Violation> {
    let mut digests = HashMap::new();
    let mut violations = Vec::new();
    let mut violation = |what: String| violations.push(Violation { promise: "convergence", what });
    for sample in &history.samples {
        let first = digests.entry(sample.applied_index).or_insert(sample);
        if first.state_digest != sample.state_digest {
            violation(format!("two states at the same applied index: {first:?} and {sample:?}"));
        }
    }
    if history.rest.nodes.windows(2).any(|pair| pair[0] != pair[1]) {
        violation(format!("different at rest: {:?}", history.rest.nodes));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn two_states_at_one_index_are_rejected() {
        let history = Made::new().sample(7, "a").on_node(1).sample(7, "b").done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn nodes_that_differ_at_rest_are_rejected() {
        let history = Made::new().rest(|rest| rest.nodes = vec![(7, "a".into()), (8, "b".into())]).done();
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn two_states_at_two_indexes_and_one_at_rest_are_accepted() {
        let history = Made::new().sample(7, "a").on_node(1).sample(8, "b").sample(7, "a");
        let history = history.rest(|rest| rest.nodes = vec![(9, "c".into()), (9, "c".into())]).done();
        assert_eq!(check(&history), []);
    }
}
