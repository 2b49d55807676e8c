//! How long predictions took on this machine. It is never the same twice, so that it stands apart from the report.

use std::time::Duration;

use serde::Serialize;

use super::events::Events;
use super::predictions::Predictions;
use super::seconds_since;
use crate::contract::StageTimings;

/// See the module; `latency.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// What computed the chunks.
    pub backend: String,
    /// By stage, and `predict` for all of them.
    pub stages: Vec<StageSpread>,
    pub chunks: Vec<ChunkLatency>,
    /// All stages of the other policy, if there was one.
    pub against: Option<StageSpread>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSpread {
    pub stage: String,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChunkLatency {
    /// Seconds since the recording's start.
    pub at_s: f64,
    pub predict_ms: f64,
}

impl Latency {
    pub fn new(predictions: &Predictions, events: &Events, start_ns: i64) -> Self {
        let timings: Vec<StageTimings> =
            predictions.timings.iter().map(|(_, timings)| *timings).collect();
        let names = StageTimings::default().stages().map(|(name, _)| name);
        let mut stages: Vec<StageSpread> = names
            .into_iter()
            .enumerate()
            .filter_map(|(number, name)| {
                let times = timings.iter().map(|timings| timings.stages()[number].1);
                spread(name, times.collect())
            })
            .collect();
        stages.extend(spread("predict", timings.iter().map(StageTimings::total).collect()));
        let of_chunk = |(number, timings): &(usize, StageTimings)| {
            let prediction = events.predicted.get(*number)?;
            Some(ChunkLatency {
                at_s: seconds_since(start_ns, prediction.moment.log_ns),
                predict_ms: milliseconds(timings.total()),
            })
        };
        Self {
            backend: predictions.policy().backend(),
            stages,
            chunks: predictions.timings.iter().filter_map(of_chunk).collect(),
            against: spread("predict", predictions.other_timings.clone()),
        }
    }
}

fn spread(stage: &str, mut times: Vec<Duration>) -> Option<StageSpread> {
    times.sort_unstable();
    let max = *times.last()?;
    let at = |percent: usize| milliseconds(times[(times.len() * percent).div_ceil(100) - 1]);
    Some(StageSpread {
        stage: stage.to_owned(),
        p50_ms: at(50),
        p99_ms: at(99),
        max_ms: milliseconds(max),
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
