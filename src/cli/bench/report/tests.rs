use super::*;

fn sample(latencies_ms: impl IntoIterator<Item = u64>) -> Sample {
    let mut sample = Sample::new();
    sample.elapsed = Duration::from_secs(2);
    latencies_ms.into_iter().for_each(|ms| sample.add_success(Duration::from_millis(ms)));
    sample
}

fn report() -> Report {
    Report::new(vec!["http://a:1".to_owned(), "http://b:2".to_owned()], Duration::from_secs(2))
}

#[test]
fn a_row_has_its_numbers_under_their_headings() {
    let mut report = report();
    let row = report.add("renew", 16, sample(1..=100));
    assert_eq!(
        format!("{}\n{row}", report.heading()).lines().skip(1).collect::<Vec<_>>(),
        [
            "op        connections       ops/s    p50 ms    p99 ms    max ms  errors",
            "renew              16        50.0     50.02     99.01    100.03  none",
        ]
    );
    assert!(report.notes().is_empty() && !report.has_empty_run());
}

#[test]
fn the_samples_of_connections_add_up() {
    let mut all = sample([1, 1]);
    let mut other = sample([9]);
    other.add_error("unavailable".to_owned());
    all.merge(&other);
    all.merge(&other);
    assert_eq!((all.latencies_us.len(), all.errors["unavailable"]), (4, 2));
}

#[test]
fn a_run_without_a_success_shows_no_latency() {
    let mut report = report();
    let mut failed = sample([]);
    failed.add_error("unavailable".to_owned());
    failed.add_error("timeout".to_owned());
    failed.add_error("timeout".to_owned());
    let row = report.add("status", 1, failed);
    assert_eq!(row, "status              1         0.0         -         -         -  timeout 2, unavailable 1");
    assert!(report.has_empty_run());
    assert!(report.to_json()["runs"][0]["p99_ms"].is_null());
}

#[test]
fn a_note_about_the_rate_limit_names_the_flag_that_raises_it() {
    let mut report = report();
    let mut limited = sample([1]);
    limited.add_error("rate_limited".to_owned());
    report.add("campaign", 1, limited);
    assert!(report.notes()[0].contains("429") && report.notes()[0].contains("--campaigns-per-minute"));
    assert_eq!(report.to_json()["runs"][0]["errors"]["rate_limited"], 1);
}

#[test]
fn a_latency_of_any_size_can_be_recorded() {
    let mut sample = sample([]);
    sample.add_success(Duration::ZERO);
    sample.add_success(Duration::from_secs(3600));
    assert_eq!(sample.latencies_us.len(), 2);
}
