//! The `quorate` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    quorate::cli::run(std::env::args_os()).into()
}
