use super::*;

fn exit(line: &str) -> Exit {
    run(line.split(' ').map(OsString::from))
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn help_and_version_succeed() {
    for line in ["quorate --help", "quorate --version", "quorate serve --help", "quorate bench -h"] {
        assert_eq!(exit(line), Exit::Success, "{line}");
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let lines = ["quorate", "quorate dance", "quorate serve --no-such-flag", "quorate bench --connections 0"];
    for line in lines {
        assert_eq!(exit(line), Exit::Usage, "{line}");
    }
    assert_eq!(exit("quorate serve --campaigns-per-minute many"), Exit::Usage);
    assert_eq!(exit("quorate healthcheck --url https://example.com"), Exit::Usage);
}

#[test]
fn a_wrong_configuration_has_its_own_exit_code() {
    assert_eq!(exit("quorate serve --name not/a/name"), Exit::Configuration);
    assert_eq!(exit("quorate serve --config /no/such/file.toml"), Exit::Configuration);
}

#[test]
fn a_cause_is_printed_once() {
    let cause = || std::io::Error::other("the disk is gone");
    let quoted = crate::node::NodeError::Listen {
        flag: "--listen",
        address: "127.0.0.1:7400".parse().unwrap(),
        source: cause(),
    };
    assert_eq!(in_one_line(&quoted.into()).matches("the disk is gone").count(), 1);
    let wrapped = anyhow::Error::from(cause()).context("no start");
    assert_eq!(in_one_line(&wrapped), "no start: the disk is gone");
}

#[test]
fn a_cluster_that_was_not_reached_has_its_own_exit_code() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(exit(&format!("quorate healthcheck --url http://{free}")), Exit::Unreachable);
    assert_eq!(exit(&format!("quorate bench --duration 10ms --url http://{free}")), Exit::Unreachable);
}

#[test]
fn the_variables_of_all_commands_are_known() {
    let known = known_variables();
    for name in ["QUORATE_CONFIG", "QUORATE_PEERS", "QUORATE_LOG", "QUORATE_URL", "QUORATE_TERM"] {
        assert!(known.iter().any(|other| other == name), "{name}");
    }
}

#[test]
fn the_help_of_every_command_has_an_example() {
    for command in Cli::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example"), "{}", command.get_name());
    }
}
