//! Quality of service: what one end of a topic offers or asks for, and whether the two go together.

mod compatible;
#[cfg(feature = "ros")]
mod wire;

use std::fmt;
use std::time::Duration;

pub use compatible::{Policy, conflicts};

/// Whether lost messages are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    BestEffort,
    Reliable,
    /// What the middleware has; of a discovered publisher: not known.
    SystemDefault,
}

/// Whether a late subscriber gets old messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Volatile,
    TransientLocal,
    /// As [`Reliability::SystemDefault`].
    SystemDefault,
}

/// How many messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    KeepLast,
    KeepAll,
    /// As [`Reliability::SystemDefault`]; a publisher does not tell its history.
    SystemDefault,
}

/// How a publisher shows that it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveliness {
    Automatic,
    ManualByTopic,
}

/// The policies of one end of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub reliability: Reliability,
    pub durability: Durability,
    pub history: History,
    /// Messages kept with [`History::KeepLast`].
    pub depth: usize,
    /// Longest time between two messages; `None` for any.
    pub deadline: Option<Duration>,
    pub liveliness: Liveliness,
    /// Longest time between two signs of life; `None` for any.
    pub lease: Option<Duration>,
}

impl Profile {
    /// Best effort, volatile, the last 5: the profile of sensors.
    pub const SENSOR_DATA: Profile =
        Profile { reliability: Reliability::BestEffort, depth: 5, ..Profile::reliable(1) };

    /// Reliable, volatile, the last `depth`.
    pub const fn reliable(depth: usize) -> Self {
        Self {
            reliability: Reliability::Reliable,
            durability: Durability::Volatile,
            history: History::KeepLast,
            depth,
            deadline: None,
            liveliness: Liveliness::Automatic,
            lease: None,
        }
    }

    /// Reliable and kept for late subscribers, the last `depth`.
    pub const fn latched(depth: usize) -> Self {
        Self { durability: Durability::TransientLocal, ..Self::reliable(depth) }
    }
}

/// Names that parameters have for the choices of a policy.
macro_rules! names {
    ($policy:ident: $($choice:ident $name:literal),+) => {
        impl $policy {
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            pub fn name(self) -> &'static str {
                match self { $($policy::$choice => $name),+ }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some($policy::$choice),)+ _ => None }
            }
        }
    };
}

names!(Reliability: Reliable "reliable", BestEffort "best_effort", SystemDefault "system_default");
names!(Durability: Volatile "volatile", TransientLocal "transient_local", SystemDefault "system_default");
names!(History: KeepLast "keep_last", KeepAll "keep_all", SystemDefault "system_default");
names!(Liveliness: Automatic "automatic", ManualByTopic "manual_by_topic");

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.reliability.name(), self.durability.name())?;
        match self.history {
            History::KeepLast => write!(f, ", keep_last {}", self.depth)?,
            History::KeepAll => f.write_str(", keep_all")?,
            History::SystemDefault => {}
        }
        if let Some(deadline) = self.deadline {
            write!(f, ", deadline {} s", deadline.as_secs_f64())?;
        }
        if self.liveliness != Liveliness::Automatic || self.lease.is_some() {
            write!(f, ", liveliness {}", self.liveliness.name())?;
        }
        if let Some(lease) = self.lease {
            write!(f, " within {} s", lease.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_told_in_the_words_of_the_parameters() {
        assert_eq!(Profile::SENSOR_DATA.to_string(), "best_effort, volatile, keep_last 5");
        let profile = Profile {
            history: History::SystemDefault,
            deadline: Some(Duration::from_millis(100)),
            liveliness: Liveliness::ManualByTopic,
            lease: Some(Duration::from_secs(2)),
            ..Profile::latched(1)
        };
        assert_eq!(
            profile.to_string(),
            "reliable, transient_local, deadline 0.1 s, liveliness manual_by_topic within 2 s"
        );
    }

    #[test]
    fn names_go_both_ways() {
        for name in Reliability::NAMES {
            assert_eq!(Reliability::from_name(name).map(Reliability::name), Some(*name));
        }
        assert_eq!(Durability::from_name("latched"), None);
    }
}
