//! `statistics.json` of one embodiment: ranges and moments of every group.

use serde_json::{Map, Value};

use super::embodiments::EmbodimentProblem;
use super::json;
use crate::contract::has_no_range;

/// File with the statistics of the training data.
pub const STATISTICS_FILE: &str = "statistics.json";

/// The statistics that a group may have.
const KEYS: [&str; 6] = ["min", "max", "mean", "std", "q01", "q99"];

/// The statistics of one group of one table.
pub(super) struct GroupStatistics<'a> {
    table: &'static str,
    group: &'a str,
    values: &'a Map<String, Value>,
}

/// One statistic, either the same for every step, `[dim]`, or for each step, `[horizon, dim]` row-major.
pub(super) enum Statistic {
    Constant(Vec<f64>),
    PerStep(Vec<f64>),
}

/// Two statistics that belong together, as low and high or as mean and deviation.
pub(super) enum StatisticPair {
    Constant(Vec<f64>, Vec<f64>),
    PerStep(Vec<f64>, Vec<f64>),
}

impl<'a> GroupStatistics<'a> {
    /// Looks a group up in `tag`, the statistics of an embodiment.
    pub(super) fn find(
        tag: &'a Value,
        table: &'static str,
        group: &'a str,
    ) -> Result<Self, EmbodimentProblem> {
        let missing = || EmbodimentProblem::NoGroup { table, group: group.to_owned() };
        let values = tag
            .get(table)
            .and_then(|groups| groups.get(group))
            .and_then(Value::as_object)
            .ok_or_else(missing)?;
        Ok(Self { table, group, values })
    }

    /// Number of values of the group: the length of statistic `key`, which all others must share.
    pub(super) fn dim(&self, key: &'static str) -> Result<usize, EmbodimentProblem> {
        let dim = self.list(key)?.len();
        if dim == 0 {
            return Err(EmbodimentProblem::EmptyStatistic {
                table: self.table,
                group: self.group.to_owned(),
                key,
            });
        }
        for other in KEYS.into_iter().filter(|other| self.values.contains_key(*other)) {
            self.check_length(other, self.list(other)?.len(), dim)?;
        }
        Ok(dim)
    }

    /// Low and high bounds, `[dim]`; low is at most high, but for rounding in a dimension that never moved.
    pub(super) fn bounds(
        &self,
        keys: [&'static str; 2],
        dim: usize,
        horizon: usize,
    ) -> Result<StatisticPair, EmbodimentProblem> {
        let pair = self.pair(keys, dim, horizon)?;
        let (low, high) = pair.values();
        let unusable = |(low, high): (&f64, &f64)| {
            !(high - low).is_finite() || (high < low && !has_no_range(*low, *high))
        };
        match low.iter().zip(high).position(unusable) {
            Some(at) => Err(EmbodimentProblem::Bounds {
                table: self.table,
                group: self.group.to_owned(),
                keys,
                dimension: at % dim,
                low: low[at],
                high: high[at],
            }),
            None => Ok(pair),
        }
    }

    /// Mean and standard deviation, `[dim]`; no deviation is negative.
    pub(super) fn moments(
        &self,
        dim: usize,
        horizon: usize,
    ) -> Result<StatisticPair, EmbodimentProblem> {
        let pair = self.pair(["mean", "std"], dim, horizon)?;
        let (_, std) = pair.values();
        match std.iter().position(|std| *std < 0.0) {
            Some(at) => Err(EmbodimentProblem::NegativeStd {
                table: self.table,
                group: self.group.to_owned(),
                dimension: at % dim,
                found: std[at],
            }),
            None => Ok(pair),
        }
    }

    fn pair(
        &self,
        keys: [&'static str; 2],
        dim: usize,
        horizon: usize,
    ) -> Result<StatisticPair, EmbodimentProblem> {
        let [first, second] = keys;
        match (self.statistic(first, dim, horizon)?, self.statistic(second, dim, horizon)?) {
            (Statistic::Constant(first), Statistic::Constant(second)) => {
                Ok(StatisticPair::Constant(first, second))
            }
            (Statistic::PerStep(first), Statistic::PerStep(second)) => {
                Ok(StatisticPair::PerStep(first, second))
            }
            _ => Err(EmbodimentProblem::MixedRows {
                table: self.table,
                group: self.group.to_owned(),
                keys,
            }),
        }
    }

    /// Reads `[dim]`, or in the table of relative actions also `[horizon][dim]`.
    fn statistic(
        &self,
        key: &'static str,
        dim: usize,
        horizon: usize,
    ) -> Result<Statistic, EmbodimentProblem> {
        let list = self.list(key)?;
        if self.table != RELATIVE_TABLE || !list.first().is_some_and(Value::is_array) {
            return self.row(key, list, dim).map(Statistic::Constant);
        }
        if list.len() != horizon {
            return Err(EmbodimentProblem::Rows {
                group: self.group.to_owned(),
                key,
                found: list.len(),
                horizon,
            });
        }
        let mut values = Vec::with_capacity(horizon * dim);
        for row in list {
            let row = row.as_array().map_or(&[][..], Vec::as_slice);
            values.extend(self.row(key, row, dim)?);
        }
        Ok(Statistic::PerStep(values))
    }

    fn list(&self, key: &'static str) -> Result<&'a [Value], EmbodimentProblem> {
        match self.values.get(key) {
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(EmbodimentProblem::Field {
                key: format!("{}.{}.{key}", self.table, self.group),
                found: json::brief(other),
                accepted: "a list of numbers".to_owned(),
            }),
            None => Err(EmbodimentProblem::NoStatistic {
                table: self.table,
                group: self.group.to_owned(),
                key,
            }),
        }
    }

    fn row(
        &self,
        key: &'static str,
        row: &[Value],
        dim: usize,
    ) -> Result<Vec<f64>, EmbodimentProblem> {
        self.check_length(key, row.len(), dim)?;
        row.iter()
            .map(|value| {
                value.as_f64().filter(|value| value.is_finite()).ok_or_else(|| {
                    EmbodimentProblem::NotANumber {
                        table: self.table,
                        group: self.group.to_owned(),
                        key,
                        found: json::brief(value),
                    }
                })
            })
            .collect()
    }

    fn check_length(
        &self,
        key: &'static str,
        found: usize,
        expected: usize,
    ) -> Result<(), EmbodimentProblem> {
        if found == expected {
            return Ok(());
        }
        Err(EmbodimentProblem::Length {
            table: self.table,
            group: self.group.to_owned(),
            key,
            found,
            expected,
        })
    }
}

/// The table whose statistics may have one row per step of a chunk.
pub(super) const RELATIVE_TABLE: &str = "relative_action";

impl StatisticPair {
    /// The two lists, whichever layout they have.
    pub(super) fn into_values(self) -> (Vec<f64>, Vec<f64>) {
        match self {
            StatisticPair::Constant(first, second) | StatisticPair::PerStep(first, second) => {
                (first, second)
            }
        }
    }

    fn values(&self) -> (&[f64], &[f64]) {
        match self {
            StatisticPair::Constant(first, second) | StatisticPair::PerStep(first, second) => {
                (first, second)
            }
        }
    }
}
