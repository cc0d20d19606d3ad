//! A node without a quorum confirms nothing.

use super::super::history::{Answer, Asked, History};
use super::violation::Violation;

pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    for attempt in &history.attempts {
        let confirmed =
            matches!(attempt.answer, Answer::Ok(_) | Answer::NotHolder) && attempt.asked != Asked::LocalRead;
        let Some(answered_at) = attempt.answered_at.filter(|_| confirmed) else { continue };
        let alone = history.faults.iter().find(|fault| {
            fault.without_quorum.contains(&attempt.node) && fault.cut <= attempt.sent_at && answered_at <= fault.undone
        });
        if let Some(fault) = alone {
            violations.push(Violation { promise: "minority honesty", what: format!("{attempt:?} during {fault:?}") });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn an_answer_of_a_node_without_a_quorum_is_rejected() {
        let fault = || Made::new().on_node(1).fault(100, 900, Some(1_000), &[1]);
        assert_eq!(check(&fault().won("a", 5, 200, 300).done()).len(), 1);
        assert_eq!(check(&fault().read_vacant(200, 300).done()).len(), 1);
    }

    #[test]
    fn answers_from_other_times_or_nodes_and_local_or_unknown_ones_are_accepted() {
        let fault = || Made::new().fault(100, 900, Some(1_000), &[1]);
        let made = fault().won("a", 5, 200, 300).on_node(1).won("b", 6, 99, 300).won("c", 7, 500, 901);
        assert_eq!(check(&made.read_locally("a", 5, 200, 300).campaign_unknown("d", 400).done()), []);
    }
}
