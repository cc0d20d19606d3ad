use super::*;

#[test]
fn the_exit_codes_are_those_of_the_help() {
    let codes = [Exit::Success, Exit::Usage, Exit::Unreachable, Exit::Internal, Exit::Configuration];
    assert_eq!(codes.map(Exit::code), [0, 64, 69, 70, 78]);
    let codes = [Exit::OtherLeads, Exit::NotWonInTime, Exit::Lost, Exit::NotAllowed, Exit::Child(3), Exit::Signal(15)];
    assert_eq!(codes.map(Exit::code), [10, 11, 20, 77, 3, 143]);
    assert_eq!(Failure::from(anyhow::anyhow!("a bug")).exit, Exit::Internal);
}

#[test]
fn an_error_about_unencrypted_tokens_names_the_flag_that_allows_them() {
    let failure = Failure::from(ClientError::Cleartext { host: "a".to_owned() });
    assert_eq!(failure.exit, Exit::Usage);
    assert!(format!("{:#}", failure.error).contains("--allow-insecure-http"));
}
