use super::*;

#[test]
fn exit_codes_are_those_of_the_manual() {
    let codes = [Exit::Success, Exit::Usage, Exit::Unreachable, Exit::Internal, Exit::Configuration];
    assert_eq!(codes.map(Exit::code), [0, 64, 69, 70, 78]);
    let codes = [Exit::OtherLeads, Exit::WaitedInVain, Exit::Lost, Exit::NotAllowed, Exit::Child(3), Exit::Signal(15)];
    assert_eq!(codes.map(Exit::code), [10, 11, 20, 77, 3, 143]);
    assert_eq!(Failure::from(anyhow::anyhow!("a bug")).exit, Exit::Internal);
}
