//! What a goal asks for, and when it has ended.

use crate::contract::Noise;

/// A goal as it came, times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Empty for the instruction in force.
    pub instruction: String,
    pub seed: Option<u64>,
    /// Empty: drawn from the seed.
    pub noise: Vec<f32>,
    /// 0 for no such bound.
    pub chunks: u32,
    /// 0 for no such bound.
    pub duration_ns: i64,
    /// 0 for the node's own.
    pub deadline_ns: i64,
}

/// What a goal may ask for now.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The instruction in force; empty for none.
    pub instruction: String,
    pub seed: u64,
    /// Rows and columns of the initial noise.
    pub noise_shape: [usize; 2],
    /// No goal lasts longer.
    pub max_duration_ns: i64,
}

/// A goal that can be worked on.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    pub instruction: String,
    pub noise: Noise,
    /// Chunks after which it has succeeded.
    pub chunks: Option<u32>,
    /// Time after which it has succeeded, counted from its acceptance.
    pub duration_ns: Option<i64>,
    /// Time after which it is aborted, counted from its acceptance.
    pub deadline_ns: Option<i64>,
    /// As `deadline_ns`, by the node's own limit.
    pub max_duration_ns: i64,
}

/// Why a goal is not accepted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GoalError {
    #[error("it has no instruction, and there is none in force; give one")]
    NoInstruction,
    #[error("it has noise of {found} values, the policy takes [{rows}, {columns}] = {}", rows * columns)]
    NoiseLength { found: usize, rows: usize, columns: usize },
    #[error("value {index} of its noise is {value}, not a finite number")]
    NoiseNotFinite { index: usize, value: f32 },
    #[error("it has both a seed and noise; give one of them")]
    SeedAndNoise,
    #[error("its {name} is {} s; give 0 or more", seconds(*.ns))]
    Negative { name: &'static str, ns: i64 },
    #[error(
        "its {name} is {} s, more than goal_max_duration_s ({} s) lets any goal last",
        seconds(*.ns),
        seconds(*.limit_ns)
    )]
    TooLong { name: &'static str, ns: i64, limit_ns: i64 },
    #[error("its deadline of {} s ends before its duration of {} s", seconds(*.deadline_ns), seconds(*.duration_ns))]
    DeadlineFirst { deadline_ns: i64, duration_ns: i64 },
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

impl Goal {
    /// # Errors
    /// Something in the goal cannot be done.
    pub fn new(asked: Asked, terms: &Terms) -> Result<Self, GoalError> {
        let Asked { instruction, seed, noise, chunks, duration_ns, deadline_ns } = asked;
        let given = if instruction.is_empty() { &terms.instruction } else { &instruction };
        if given.trim().is_empty() {
            return Err(GoalError::NoInstruction);
        }
        let limit_ns = terms.max_duration_ns;
        for (name, ns) in [("duration", duration_ns), ("deadline", deadline_ns)] {
            if ns < 0 {
                return Err(GoalError::Negative { name, ns });
            }
            if ns > limit_ns {
                return Err(GoalError::TooLong { name, ns, limit_ns });
            }
        }
        if 0 < deadline_ns && deadline_ns < duration_ns {
            return Err(GoalError::DeadlineFirst { deadline_ns, duration_ns });
        }
        let bounded = |ns: i64| (ns > 0).then_some(ns);
        // Without any bound of its own, a goal is for one chunk.
        let chunks = if chunks == 0 && duration_ns == 0 { 1 } else { chunks };
        Ok(Self {
            instruction: given.clone(),
            noise: checked_noise(seed, noise, terms)?,
            chunks: (chunks > 0).then_some(chunks),
            duration_ns: bounded(duration_ns),
            deadline_ns: bounded(deadline_ns),
            max_duration_ns: limit_ns,
        })
    }

    /// How a goal ends by itself after so many chunks and so much time since its acceptance, if it does.
    pub fn ended(&self, chunks: u32, elapsed_ns: i64) -> Option<Ended> {
        let over = |limit: Option<i64>| limit.is_some_and(|limit| elapsed_ns >= limit);
        if self.chunks.is_some_and(|wanted| chunks >= wanted) || over(self.duration_ns) {
            return Some(Ended::Succeeded);
        }
        if over(self.deadline_ns) {
            return Some(Ended::Deadline);
        }
        over(Some(self.max_duration_ns)).then_some(Ended::MaxDuration)
    }
}

/// How a goal has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Succeeded,
    Deadline,
    MaxDuration,
}

fn checked_noise(seed: Option<u64>, noise: Vec<f32>, terms: &Terms) -> Result<Noise, GoalError> {
    if noise.is_empty() {
        return Ok(Noise::Seed(seed.unwrap_or(terms.seed)));
    }
    if seed.is_some() {
        return Err(GoalError::SeedAndNoise);
    }
    let [rows, columns] = terms.noise_shape;
    if noise.len() != rows * columns {
        return Err(GoalError::NoiseLength { found: noise.len(), rows, columns });
    }
    if let Some((index, &value)) = noise.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(GoalError::NoiseNotFinite { index, value });
    }
    Ok(Noise::Explicit(noise))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn terms() -> Terms {
        Terms {
            instruction: "wave".to_owned(),
            seed: 42,
            noise_shape: [2, 3],
            max_duration_ns: 60 * S,
        }
    }

    fn refused(asked: Asked) -> String {
        Goal::new(asked, &terms()).expect_err("refused").to_string()
    }

    #[test]
    fn what_is_left_open_is_the_nodes() {
        let goal = Goal::new(Asked::default(), &terms()).expect("one chunk");
        assert_eq!((goal.instruction.as_str(), &goal.noise), ("wave", &Noise::Seed(42)));
        assert_eq!(goal.ended(0, 0), None);
        assert_eq!(goal.ended(1, 0), Some(Ended::Succeeded));
        assert_eq!(goal.ended(0, 60 * S), Some(Ended::MaxDuration));
    }

    #[test]
    fn bounds_of_its_own() {
        let asked = Asked {
            instruction: "stop".to_owned(),
            seed: Some(7),
            chunks: 3,
            duration_ns: 2 * S,
            deadline_ns: 5 * S,
            ..Asked::default()
        };
        let goal = Goal::new(asked.clone(), &terms()).expect("valid");
        assert_eq!((goal.instruction.as_str(), &goal.noise), ("stop", &Noise::Seed(7)));
        assert_eq!(goal.ended(2, 2 * S - 1), None);
        assert_eq!(goal.ended(3, 0), Some(Ended::Succeeded));
        assert_eq!(goal.ended(0, 2 * S), Some(Ended::Succeeded));
        let goal = Goal::new(Asked { duration_ns: 0, ..asked }, &terms()).expect("valid");
        assert_eq!(goal.ended(2, 5 * S), Some(Ended::Deadline));
        assert_eq!(goal.ended(3, 5 * S), Some(Ended::Succeeded));
        let endless = Asked { duration_ns: 9 * S, ..Asked::default() };
        let goal = Goal::new(endless, &terms()).expect("valid");
        assert_eq!(goal.ended(1_000, 9 * S - 1), None, "as many chunks as there is time for");
    }

    #[test]
    fn noise_is_given_whole_or_not_at_all() {
        let noise = |values: Vec<f32>| Asked { noise: values, ..Asked::default() };
        let goal = Goal::new(noise(vec![0.5; 6]), &terms()).expect("valid");
        assert_eq!(goal.noise, Noise::Explicit(vec![0.5; 6]));
        assert!(refused(noise(vec![0.5; 5])).contains("5 values, the policy takes [2, 3] = 6"));
        let mut bad = vec![0.5; 6];
        bad[4] = f32::NAN;
        assert!(refused(noise(bad)).contains("value 4 of its noise is NaN"));
        assert!(refused(Asked { seed: Some(1), ..noise(vec![0.5; 6]) }).contains("both"));
    }

    #[test]
    fn times_that_make_no_sense() {
        let timed =
            |duration_ns, deadline_ns| Asked { duration_ns, deadline_ns, ..Asked::default() };
        assert!(refused(timed(-S, 0)).contains("duration is -1 s"));
        assert!(refused(timed(0, -1)).contains("deadline is"));
        assert!(refused(timed(61 * S, 0)).contains("goal_max_duration_s (60 s)"));
        assert!(
            refused(timed(2 * S, S)).contains("deadline of 1 s ends before its duration of 2 s")
        );
        let mute = Terms { instruction: " ".to_owned(), ..terms() };
        assert_eq!(Goal::new(Asked::default(), &mute), Err(GoalError::NoInstruction));
    }
}
