//! `serve`: the policy for those who are not on ROS.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tracing::warn;

use super::WrongUsage;
use super::policy_args::PolicyArgs;
use crate::golden;
use crate::policy::{choose_embodiment, open_snapshot};
use crate::serve::environment::Environment;
use crate::serve::http::Identity;
use crate::serve::{ModelOptions, Token, check_layout, engine, http, run, zmq};
use crate::weights::lock::Lock;

/// Answer requests over HTTP, as in the public serving documents, and those of GR00T's own clients over ZeroMQ.
///
/// HTTP answers before the policy is loaded (GET /health says "starting"); over ZeroMQ, clients wait until it is. Requests of
/// both queue on one policy. SIGTERM and SIGINT end the requests under way, a second one ends at once.
///
/// Exit status: 0 after a signal, 1 if the policy cannot be served, 2 for wrong usage.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Address of the HTTP server; a port of 0 is any free one. Default: 127.0.0.1:20000, unless there is --zmq.
    #[arg(long, value_name = "IP:PORT", value_parser = |text: &str| address(text, "http://", DEFAULT_HTTP))]
    http: Option<SocketAddr>,
    /// Address of the server for the policy clients of N1.5, N1.6 and N1.7, which is 127.0.0.1:5555 by their default.
    #[arg(long, value_name = "IP:PORT", value_parser = |text: &str| address(text, "tcp://", DEFAULT_ZMQ))]
    zmq: Option<SocketAddr>,
    /// Let ZeroMQ clients end this process with `kill`.
    #[arg(long, requires = "zmq")]
    allow_kill: bool,
    /// Secret that clients show: over HTTP as `Authorization: Bearer TOKEN`, on every path but /health; over ZeroMQ as
    /// `api_token`.
    #[arg(long, env = "GR00T_HTTP_TOKEN", hide_env_values = true, value_parser = NonEmptyStringValueParser::new())]
    token: Option<String>,
    /// Requests that wait for the one that is computed; more are refused (HTTP: 503).
    #[arg(long, default_value_t = engine::Limits::default().queue, value_parser = queue)]
    queue: usize,
    /// Longest time from the queue to the answer, in seconds; then the request is refused (HTTP: 503).
    #[arg(long, default_value_t = engine::Limits::default().deadline.as_secs_f64(), value_parser = seconds)]
    deadline: f64,
    /// Largest request, in MiB.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_body_mib: u32,
    /// Predictions before the first request is answered; one at least is made.
    #[arg(long, default_value_t = 3, env = "GR00T_WARMUP_RUNS")]
    warm_up: u32,
    /// Lowest correlation and concordance with the golden, where there is one, at which the policy is served.
    #[arg(long, default_value_t = golden::DEFAULT_FLOOR, env = "GR00T_WARMUP_PCC_MIN", value_parser = super::policy_args::floor)]
    floor: f64,
    /// Directory of the golden; default: golden/EMBODIMENT in the snapshot, if there is one.
    #[arg(long)]
    golden: Option<PathBuf>,
    /// Seed of requests without seed and noise; default: the version's.
    #[arg(long, env = "GR00T_DEFAULT_SEED")]
    default_seed: Option<u64>,
    /// Layout of tokens and pictures, which limits the instruction; default: the robot's in the documents.
    #[arg(long, env = "GR00T_LAYOUT")]
    layout: Option<String>,
}

fn queue(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "a number from 1 to 1024 is needed".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "a number from 0.001 to 86400 is needed".to_owned())
}

/// Where HTTP is served if nothing else is asked for.
const DEFAULT_HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 20_000);
/// Where clients of GR00T's own server ask if nothing else is told.
const DEFAULT_ZMQ: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5555);

/// Reads an address, with or without its scheme; of a name, the first address, of the older kind if there is one.
fn address(text: &str, scheme: &str, example: SocketAddr) -> Result<SocketAddr, String> {
    let place = text.strip_prefix(scheme).unwrap_or(text).trim_end_matches('/');
    let wrong = |why: String| format!("{why}; give IP:PORT, such as {example}");
    let found: Vec<SocketAddr> =
        place.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| wrong("the name has no address".to_owned()))
}

pub fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let options = args.options()?;
    run::run(options, |url| super::print(&format!("listening on {url}\n")))
}

impl ServeArgs {
    fn options(&self) -> anyhow::Result<run::Options> {
        let mut policy = self.policy.options()?;
        let snapshot = open_snapshot(&policy)?;
        let version = snapshot.version();
        let embodiment =
            choose_embodiment(&snapshot, &policy).map_err(|error| WrongUsage(error.to_string()))?;
        let layout = self.layout.clone().filter(|layout| !layout.is_empty());
        check_layout(version, &embodiment.tag, layout.as_deref())
            .map_err(|error| WrongUsage(error.to_string()))?;
        let lock = Lock::find(None)?;
        let release = lock.release(version)?;
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let environment = Environment::read(&variables, version, release)
            .map_err(|error| WrongUsage(error.to_string()))?;
        if !environment.ignored.is_empty() {
            let names = environment.ignored.join(", ");
            warn!("ignored, as they are about a card or a Python process: {names}");
        }
        policy.tokenizer = policy.tokenizer.or(environment.tokenizer);
        if let (0, Some(threads)) = (policy.threads, environment.threads) {
            policy.threads = threads;
        }
        let own = (!policy.snapshot.as_os_str().is_empty()).then(|| snapshot.dir());
        let identity = Identity::new(version, release, own, policy.backend_name());
        Ok(run::Options {
            engine: engine::Limits {
                queue: self.queue,
                deadline: Duration::from_secs_f64(self.deadline),
            },
            token: self.token.as_deref().map(Token::new),
            http: self.http_address().map(|address| self.http(address, identity)),
            zmq: self.zmq.map(|address| self.zmq(address)),
            model: ModelOptions {
                policy,
                warm_up: self.warm_up,
                floor: self.floor,
                golden: self.golden.clone(),
                default_seed: self.default_seed,
                layout,
            },
        })
    }

    fn http_address(&self) -> Option<SocketAddr> {
        self.http.or(self.zmq.is_none().then_some(DEFAULT_HTTP))
    }

    /// Bytes of the largest request.
    fn max_body(&self) -> usize {
        (self.max_body_mib as usize) << 20
    }

    fn http(&self, address: SocketAddr, identity: Identity) -> run::Http {
        let (body_bytes, limits) = (self.max_body(), http::Limits::default());
        let held_bytes = limits.held_bytes.max(body_bytes);
        run::Http { address, identity, limits: http::Limits { body_bytes, held_bytes, ..limits } }
    }

    fn zmq(&self, address: SocketAddr) -> run::Zmq {
        let (message_bytes, limits) = (self.max_body(), zmq::Limits::default());
        let held_bytes = limits.held_bytes.max(message_bytes);
        let limits = zmq::Limits { message_bytes, held_bytes, ..limits };
        run::Zmq { address, allow_kill: self.allow_kill, limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_have_a_scheme_or_a_name() {
        let read = |text: &str| address(text, "tcp://", DEFAULT_ZMQ);
        let here = "127.0.0.1:5555".parse().expect("an address");
        for text in ["127.0.0.1:5555", "tcp://127.0.0.1:5555", "localhost:5555"] {
            assert_eq!(read(text), Ok(here), "{text}");
        }
        assert_eq!(read("[::1]:0"), Ok("[::1]:0".parse().expect("an address")));
        for text in ["127.0.0.1", "5555", "http://127.0.0.1:5555", "", "127.0.0.1:65536"] {
            let refused = read(text).expect_err(text);
            assert!(refused.contains("give IP:PORT, such as 127.0.0.1:5555"), "{text}: {refused}");
        }
    }
}
