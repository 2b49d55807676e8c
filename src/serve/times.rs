//! How long the predictions of all servers took.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::contract::StageTimings;

/// Which server was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Http,
    Zmq,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Server::Http => "http",
            Server::Zmq => "zmq",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfServer {
    server: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfStage {
    stage: &'static str,
}

/// Histograms of seconds; clones count together.
#[derive(Clone, Debug)]
pub struct Times {
    pub requests: Family<OfServer, Histogram>,
    pub stages: Family<OfStage, Histogram>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            requests: Family::new_with_constructor(histogram),
            stages: Family::new_with_constructor(histogram),
        }
    }
}

impl Times {
    /// A prediction was answered.
    pub fn answered(&self, server: Server, total: Duration, timings: &StageTimings) {
        self.requests
            .get_or_create(&OfServer { server: server.name() })
            .observe(total.as_secs_f64());
        for (stage, time) in timings.stages() {
            self.stages.get_or_create(&OfStage { stage }).observe(time.as_secs_f64());
        }
    }
}

/// 1 ms to 65 s.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-3, 2.0, 17))
}
