use super::*;

#[test]
fn a_room_reads_as_a_sentence_and_metadata_cannot_control_the_terminal() {
    assert_eq!(describe("nightly-report", None, 0), "nightly-report: vacant");
    let leader = r#"{"candidate_id":"worker-a","term":7,"expires_at":"","metadata":"\u001b[2J"}"#;
    let leader: Leader = serde_json::from_str(leader).unwrap();
    let line = describe("nightly-report", Some(&leader), 1500);
    assert_eq!(line, r#"nightly-report: worker-a ("\u{1b}[2J") leads, term 7, 1.5 s left"#);
}

#[test]
fn rooms_on_a_terminal_are_a_table() {
    let rooms = [
        r#"{"election_id":"nightly-report","status":"leader","retry_after_ms":12340,"leader":{"candidate_id":"a",
            "term":1796063093001,"expires_at":"","metadata":"http://a"}}"#,
        r#"{"election_id":"vacant-room","status":"vacant","retry_after_ms":0}"#,
    ];
    let rooms = rooms.map(|room| serde_json::from_str(room).unwrap());
    let expected = [
        "ROOM            LEADER  TERM             LEFT  METADATA",
        r#"nightly-report  a       1796063093001  12.3 s  "http://a""#,
        "vacant-room     vacant",
    ];
    assert_eq!(table(&rooms), expected.join("\n") + "\n");
}
