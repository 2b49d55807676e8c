//! The command line. Every subcommand is an adapter around [`crate::policy`] and stands in a file of its own.
//!
//! Exit status: 0 success, 1 failure with one sentence on standard error, 2 wrong usage.

mod contract;
mod doctor;
mod observation_file;
mod predict;
mod progress;
mod synth;
mod weights;

use std::io::{ErrorKind, Write};

use anyhow::Context;
use clap::{Parser, Subcommand};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::Identity;

use crate::log;
#[cfg(feature = "ros")]
use crate::node::{play, rosout, start, watch};
use crate::recording;

/// NVIDIA GR00T policies on a robot: ROS 2 node and offline tools.
#[derive(Debug, Parser)]
#[command(name = "gr00t_blackhole", version, about)]
struct Cli {
    /// How the log on standard error is written. Which lines: environment variable RUST_LOG, such as
    /// info,gr00t_blackhole=debug, which also tells the time of every stage.
    #[arg(long, global = true, value_enum, default_value_t, env = "GR00T_LOG_FORMAT")]
    log_format: log::Format,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    fn start_log(&self) -> Result<(), WrongUsage> {
        #[cfg(feature = "ros")]
        return match &self.command {
            Command::Node(args) => {
                let level = args.log_level().unwrap_or(LevelFilter::INFO);
                log::start(self.log_format, level, rosout::Copies)
            }
            _ => log::start(self.log_format, LevelFilter::INFO, Identity::new()),
        };
        #[cfg(not(feature = "ros"))]
        log::start(self.log_format, LevelFilter::INFO, Identity::new())
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The ROS 2 node: camera and joint-state topics in, action chunks out.
    #[cfg(feature = "ros")]
    Node(start::NodeArgs),
    /// Print what a checkpoint serves: robots with their cameras, state and action groups.
    Contract(contract::ContractArgs),
    /// Look for what keeps the node from working here: machine, checkpoint, parameters, DDS, the robot's topics.
    Doctor(doctor::DoctorArgs),
    /// Compute one action chunk from an observation file; no ROS involved.
    Predict(predict::PredictArgs),
    /// Write the bundled recording: camera and joint states of a robot at a table, as a rosbag2 bag.
    MakeRecording(recording::MakeRecordingArgs),
    /// Play a recording onto its topics, stamped as if it happened now.
    #[cfg(feature = "ros")]
    Play(play::PlayArgs),
    /// Write a synthetic checkpoint: same names and shapes as a released one, made-up weights.
    Synth(synth::SynthArgs),
    /// Show action chunks as they arrive, and draw them.
    #[cfg(feature = "ros")]
    Watch(watch::WatchArgs),
    Weights(weights::WeightsArgs),
}

/// Prints a result. A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write_result(&mut std::io::stdout().lock(), text)
}

fn write_result(out: &mut impl Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// The arguments are wrong: ends the process with status 2 instead of 1.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// Parses the arguments of this process and runs the subcommand.
///
/// # Errors
/// Whatever the subcommand reports, as one sentence.
pub fn run() -> anyhow::Result<()> {
    let cli = Cli::parse();
    cli.start_log()?;
    match cli.command {
        #[cfg(feature = "ros")]
        Command::Node(args) => start::run(&args),
        Command::Contract(args) => contract::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::MakeRecording(args) => recording::run(&args),
        #[cfg(feature = "ros")]
        Command::Play(args) => play::run(&args),
        Command::Synth(args) => synth::run(&args),
        #[cfg(feature = "ros")]
        Command::Watch(args) => watch::run(&args),
        Command::Weights(args) => weights::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn results_that_cannot_be_written_are_an_error() {
        let error = write_result(&mut Broken(ErrorKind::StorageFull), "text").expect_err("full");
        assert!(error.to_string().contains("standard output"), "{error}");
        write_result(&mut Broken(ErrorKind::BrokenPipe), "text").expect("a reader that left");
    }
}
