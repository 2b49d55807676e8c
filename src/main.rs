//! The `gr00t_blackhole` binary: see [`gr00t_blackhole::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    match gr00t_blackhole::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
