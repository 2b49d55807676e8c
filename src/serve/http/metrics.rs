//! What `GET /metrics` tells, in the text format of OpenMetrics.

use axum::http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::serve::times::Times;

/// What is sent with the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    route: String,
    status: u16,
}

/// Counters of a server.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    waiting: Gauge,
    held: Gauge,
    ready: Gauge,
}

/// What is looked up when the text is asked for.
pub struct Now {
    /// Requests that wait for the policy.
    pub waiting: usize,
    /// Bytes of all bodies that are held.
    pub held: usize,
    pub ready: bool,
}

impl Metrics {
    /// With the times of the predictions of all servers.
    pub fn new(times: &Times) -> Self {
        let mut registry = Registry::with_prefix("gr00t");
        let requests = Family::<Request, Counter>::default();
        let (waiting, held, ready) = (Gauge::default(), Gauge::default(), Gauge::default());
        registry.register("http_requests", "Answers by route and status", requests.clone());
        registry.register_with_unit(
            "predict_duration",
            "Time of a prediction's request, from when it is there as a whole to its answer",
            Unit::Seconds,
            times.requests.clone(),
        );
        registry.register_with_unit(
            "stage_duration",
            "Time of each stage of a prediction",
            Unit::Seconds,
            times.stages.clone(),
        );
        registry.register("queue_waiting", "Requests that wait for the policy", waiting.clone());
        registry.register("bodies_held_bytes", "Bytes of all bodies that are held", held.clone());
        registry.register("ready", "1 when the policy answers", ready.clone());
        Self { registry, requests, waiting, held, ready }
    }

    pub fn answered(&self, route: &str, status: StatusCode) {
        let request = Request { route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&request).inc();
    }

    /// All of it as text.
    pub fn text(&self, now: &Now) -> Result<String, std::fmt::Error> {
        let gauge = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        self.waiting.set(gauge(now.waiting));
        self.held.set(gauge(now.held));
        self.ready.set(now.ready.into());
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
