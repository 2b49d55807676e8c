//! The `gr00t_blackhole` binary: see [`gr00t_blackhole::cli`].

use std::process::ExitCode;

use gr00t_blackhole::cli::{WrongUsage, visible};

/// Exit status of wrong arguments, as clap has it.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    match gr00t_blackhole::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", visible(&format!("{error:#}")));
            match error.downcast_ref::<WrongUsage>() {
                Some(_) => ExitCode::from(WRONG_USAGE),
                None => ExitCode::FAILURE,
            }
        }
    }
}
