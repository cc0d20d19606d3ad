//! Lease secrets and keys are in responses only: no log and no stored file has one.

use super::super::history::History;
use super::violation::Violation;

pub fn check(history: &History) -> Vec<Violation> {
    let leaks = history.rest.leaks.iter();
    leaks.map(|place| Violation { promise: "secrets", what: format!("a secret is in {place}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn a_leak_is_rejected_and_none_accepted() {
        assert_eq!(check(&Made::new().rest(|rest| rest.leaks = vec!["a file".into()]).done()).len(), 1);
        assert_eq!(check(&Made::new().done()), []);
    }
}
