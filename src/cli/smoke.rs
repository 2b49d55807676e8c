//! `smoke`: whether a running server answers its demonstration as it should.

use std::fs;
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
    #[arg(long, default_value = "http://127.0.0.1:20000")]
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

impl ServerArgs {
    /// The server, once it is ready.
    pub fn client(&self) -> anyhow::Result<Client> {
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
