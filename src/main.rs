//! The `gr00t_blackhole` binary: see [`gr00t_blackhole::cli`].

use std::io::Write;
use std::process::ExitCode;

use gr00t_blackhole::cli::{WrongUsage, visible};

/// Exit status of wrong arguments, as clap has it.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    match gr00t_blackhole::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nothing can be said, the status says it.
            let _ = writeln!(std::io::stderr(), "error: {}", visible(&format!("{error:#}")));
            match error.downcast_ref::<WrongUsage>() {
                Some(_) => ExitCode::from(WRONG_USAGE),
                None => ExitCode::FAILURE,
            }
        }
    }
}
