//! The `gr00t_blackhole` binary: see [`gr00t_blackhole::cli`].

use std::process::ExitCode;

use gr00t_blackhole::cli::UsageError;

/// Exit status for wrong usage, as clap's.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match gr00t_blackhole::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            if error.is::<UsageError>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}
