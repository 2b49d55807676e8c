//! The log on standard error: which lines, and how they are written.
//!
//! Spans carry the stamp of the observation that is worked on; when one ends at level debug, a line tells how long it
//! took (`time.busy`).

use std::env::{self, VarError};
use std::io::IsTerminal;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use crate::cli::WrongUsage;

/// The environment variable that says which lines are written.
const FILTER: &str = "RUST_LOG";
/// Targets of this program begin with it.
pub const OWN_TARGET: &str = "gr00t_blackhole";

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log, with a copy of what is let through to `copies`. Without `RUST_LOG`, `level` counts.
///
/// # Errors
/// `RUST_LOG` is no filter.
pub fn start(
    format: Format,
    level: LevelFilter,
    copies: impl Layer<Registry> + Send + Sync + 'static,
) -> Result<(), WrongUsage> {
    let text = match env::var(FILTER) {
        Ok(text) => Some(text),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => return Err(no_filter("no UTF-8 text")),
    };
    let filter = filter(text.as_deref(), level)?;
    tracing_subscriber::registry().with(copies).with(lines(format)).with(filter).init();
    Ok(())
}

/// What a crate says of bytes that it cannot read.
const QUIET: &str = "cdr_encoding=off";

fn lines<S>(format: Format) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = fmt::layer()
        .with_ansi(format == Format::Text && std::io::stderr().is_terminal())
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr);
    match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().boxed(),
    }
}

/// The filter that `text` is, or that of the level where there is none.
fn filter(text: Option<&str>, level: LevelFilter) -> Result<EnvFilter, WrongUsage> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        // Every message that is no CDR is told by the node, with its topic.
        let quiet = QUIET.parse().map_err(|error| no_filter(&format!("'{QUIET}': {error}")))?;
        return Ok(EnvFilter::default().add_directive(level.into()).add_directive(quiet));
    };
    // A lone word that is no level would be taken for a target that nobody has.
    let lone = |part: &&str| !part.contains(['=', '[', ':']) && !part.starts_with(OWN_TARGET);
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    if let Some(word) = parts.filter(lone).find(|word| word.parse::<LevelFilter>().is_err()) {
        return Err(no_filter(&format!("'{text}': '{word}' is no level")));
    }
    EnvFilter::builder().parse(text).map_err(|error| no_filter(&format!("'{text}': {error}")))
}

fn no_filter(reason: &str) -> WrongUsage {
    WrongUsage(format!(
        "environment variable {FILTER} is {reason}; give off, error, warn, info, debug or trace, or a level per target \
         such as info,{OWN_TARGET}=debug"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_variable_says_counts_before_the_level() {
        for (text, level, expected) in [
            (None, LevelFilter::WARN, "cdr_encoding=off,warn"),
            (Some(" "), LevelFilter::INFO, "cdr_encoding=off,info"),
            (Some("debug"), LevelFilter::INFO, "debug"),
            (Some("info,gr00t_blackhole=debug"), LevelFilter::OFF, "gr00t_blackhole=debug,info"),
        ] {
            assert_eq!(filter(text, level).expect("filter").to_string(), expected, "{text:?}");
        }
        assert!(filter(Some("gr00t_blackhole::node"), LevelFilter::INFO).is_ok());
    }

    #[test]
    fn what_is_no_filter_is_refused_with_what_would_be() {
        for (text, reason) in [
            ("loud", "'loud' is no level"),
            ("info,r2r=loud", "'info,r2r=loud': error parsing level"),
            ("info,lod", "'lod'"),
        ] {
            let error = filter(Some(text), LevelFilter::INFO).expect_err(text).to_string();
            assert!(error.contains(reason) && error.contains("RUST_LOG"), "{error}");
            assert!(error.contains("off, error, warn, info, debug or trace"), "{error}");
        }
    }
}
