//! The command line. Every subcommand is an adapter around [`crate::policy`] and stands in a file of its own.
//!
//! Exit status: 0 success, 1 failure with one sentence on standard error, 2 wrong usage.

mod bag;
mod bench_http;
mod contract;
mod doctor;
mod fidelity;
mod golden;
mod package;
mod plan;
mod policy_args;
mod predict;
mod progress;
mod replay;
mod reproduce;
mod serve;
mod smoke;
mod synth;
mod weights;

use std::borrow::Cow;
use std::env::var_os;
use std::io::{ErrorKind, Write};

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::Identity;

use crate::log;
#[cfg(feature = "ros")]
use crate::node::{play, rosout, start, watch};
use crate::recording;
use crate::words::escaped;

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

/// What each command does stands at its arguments: a text here would take its place in `--help`.
#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "ros")]
    Node(start::NodeArgs),
    Bag(bag::BagArgs),
    BenchHttp(bench_http::BenchHttpArgs),
    Contract(contract::ContractArgs),
    Doctor(doctor::DoctorArgs),
    Fidelity(fidelity::FidelityArgs),
    Golden(golden::GoldenArgs),
    Package(package::PackageArgs),
    Plan(Box<plan::PlanArgs>),
    Predict(predict::PredictArgs),
    MakeRecording(recording::MakeRecordingArgs),
    #[cfg(feature = "ros")]
    Play(play::PlayArgs),
    Replay(Box<replay::ReplayArgs>),
    Serve(Box<serve::ServeArgs>),
    Smoke(smoke::SmokeArgs),
    Synth(synth::SynthArgs),
    #[cfg(feature = "ros")]
    Watch(watch::WatchArgs),
    Weights(weights::WeightsArgs),
}

/// Prints a result. A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write_result(&mut std::io::stdout().lock(), &visible(text))
}

/// Text for a terminal, in which names from files command nothing: control characters other than line ends and tabs are
/// written out.
pub fn visible(text: &str) -> Cow<'_, str> {
    const KEPT: [char; 2] = ['\n', '\t'];
    let commands = |c: char| c.is_control() && !KEPT.contains(&c);
    if text.contains(commands) { Cow::Owned(escaped(text, &KEPT)) } else { Cow::Borrowed(text) }
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

/// An environment variable that is set to nothing counts as unset, as in files where a service's variables wait to be
/// filled in.
fn heed_set_variables(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &Arg| {
        arg.get_env().is_some_and(|name| var_os(name).is_some_and(|value| value.is_empty()))
    };
    let command =
        command.mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg });
    command.mut_subcommands(heed_set_variables)
}

/// Parses the arguments of this process and runs the subcommand.
///
/// # Errors
/// Whatever the subcommand reports, as one sentence.
pub fn run() -> anyhow::Result<()> {
    let arguments = heed_set_variables(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&arguments).unwrap_or_else(|error| error.exit());
    cli.start_log()?;
    match cli.command {
        #[cfg(feature = "ros")]
        Command::Node(args) => start::run(&args),
        Command::Bag(args) => bag::run(&args),
        Command::BenchHttp(args) => bench_http::run(&args),
        Command::Contract(args) => contract::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Fidelity(args) => fidelity::run(&args),
        Command::Golden(args) => golden::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::MakeRecording(args) => recording::run(&args),
        #[cfg(feature = "ros")]
        Command::Play(args) => play::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Smoke(args) => smoke::run(&args),
        Command::Synth(args) => synth::run(&args),
        #[cfg(feature = "ros")]
        Command::Watch(args) => watch::run(&args),
        Command::Weights(args) => weights::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_listed_in_one_line_and_explained_in_its_help() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let about = command.get_about().unwrap_or_else(|| panic!("{name}")).to_string();
            assert!(about.chars().count() <= 110, "{name}: {about}");
        }
        let mut cli = Cli::command();
        for (name, part) in [
            ("contract", "why"),
            ("doctor", "Exit status: 0 if nothing fails"),
            #[cfg(feature = "ros")]
            ("play", "all other bytes are sent as recorded"),
            ("synth", "knows nothing about robots"),
        ] {
            let command = cli.find_subcommand_mut(name).expect(name);
            let help = command.render_long_help().to_string();
            // Wherever the lines are broken.
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains(part), "{name}: {help}");
        }
    }

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
    fn names_from_files_command_no_terminal() {
        assert_eq!(visible("a\tb\n"), "a\tb\n");
        assert_eq!(visible("clear \u{1b}[2J\r"), "clear \\u{1b}[2J\\r");
    }

    #[test]
    fn results_that_cannot_be_written_are_an_error() {
        let error = write_result(&mut Broken(ErrorKind::StorageFull), "text").expect_err("full");
        assert!(error.to_string().contains("standard output"), "{error}");
        write_result(&mut Broken(ErrorKind::BrokenPipe), "text").expect("a reader that left");
    }
}
