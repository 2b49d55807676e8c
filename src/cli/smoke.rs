//! `smoke`: whether a running server answers its demonstration as it should.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::progress::Bar;
use crate::serve::client::Client;
use crate::serve::smoke;

/// A running server.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Address of the server.
    #[arg(long, default_value = "http://127.0.0.1:20000", value_parser = url)]
    pub url: String,
    /// The server's token.
    #[arg(long, env = "GR00T_HTTP_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// How long to wait for a server that is starting, in seconds.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub wait: u32,
    /// Write the report here, as JSON.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Reads a URL; one without a scheme is taken for HTTP's.
fn url(text: &str) -> Result<String, String> {
    let wrong = || "a URL is needed, such as http://127.0.0.1:20000".to_owned();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let rest =
        whole.strip_prefix("http://").or(whole.strip_prefix("https://")).ok_or_else(wrong)?;
    if rest.is_empty() || rest.contains(char::is_whitespace) { Err(wrong()) } else { Ok(whole) }
}

impl ServerArgs {
    /// The server, once it is ready. That the report can be written is seen to first.
    pub fn client(&self) -> anyhow::Result<Client> {
        if let Some(path) = &self.out {
            let file = File::options().append(true).create(true).open(path);
            file.with_context(|| format!("cannot write {}", path.display()))?;
        }
        let token = self.token.clone().filter(|token| !token.is_empty());
        let client = Client::new(&self.url, token);
        let mut told = String::new();
        client.wait(Duration::from_secs(self.wait.into()), |status| {
            if told != status {
                eprintln!("waiting: {status}");
                status.clone_into(&mut told);
            }
        })?;
        Ok(client)
    }

    /// Writes the report, if it is asked for.
    pub fn write(&self, report: &impl serde::Serialize) -> anyhow::Result<()> {
        let Some(path) = &self.out else { return Ok(()) };
        let text = serde_json::to_string_pretty(report)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Post a running server's demonstration, and compare the answer with the one that is known.
///
/// Twice the same request, twice one with a seed; prints one line, PASS or FAIL. Exit status: 0 if it passes, 1 if it does
/// not or the server does not answer, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct SmokeArgs {
    #[command(flatten)]
    server: ServerArgs,
}

pub fn run(args: &SmokeArgs) -> anyhow::Result<()> {
    let client = args.server.client()?;
    let bar = Bar::of_things("asking", Some(smoke::STEPS));
    let report = smoke::look(&client, || bar.step());
    bar.finish();
    let report = report?;
    args.server.write(&report)?;
    super::print(&format!("{report}\n"))?;
    if !report.pass {
        bail!("the server does not pass: {}", report.failures.join("; "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_needs_no_scheme() {
        assert_eq!(url("localhost:20000").as_deref(), Ok("http://localhost:20000"));
        assert_eq!(url("https://robot/policy").as_deref(), Ok("https://robot/policy"));
        for wrong in ["", "tcp://127.0.0.1:5555", "http://", "a b"] {
            assert!(url(wrong).expect_err(wrong).contains("http://127.0.0.1:20000"));
        }
    }
}
