//! Profiles from and to r2r.

use std::time::Duration;

use r2r::QosProfile;
use r2r::qos::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};

use super::{Durability, History, Liveliness, Profile, Reliability};

/// RMW_DURATION_INFINITE has so many seconds.
const INFINITE_S: u64 = 9_223_372_036;

impl From<&QosProfile> for Profile {
    fn from(qos: &QosProfile) -> Self {
        Self {
            reliability: match qos.reliability {
                ReliabilityPolicy::BestEffort => Reliability::BestEffort,
                ReliabilityPolicy::Reliable => Reliability::Reliable,
                _ => Reliability::SystemDefault,
            },
            durability: match qos.durability {
                DurabilityPolicy::Volatile => Durability::Volatile,
                DurabilityPolicy::TransientLocal => Durability::TransientLocal,
                _ => Durability::SystemDefault,
            },
            history: match qos.history {
                HistoryPolicy::KeepLast => History::KeepLast,
                HistoryPolicy::KeepAll => History::KeepAll,
                _ => History::SystemDefault,
            },
            depth: qos.depth,
            deadline: limit(qos.deadline),
            liveliness: match qos.liveliness {
                LivelinessPolicy::ManualByTopic => Liveliness::ManualByTopic,
                _ => Liveliness::Automatic,
            },
            lease: limit(qos.liveliness_lease_duration),
        }
    }
}

/// Zero stands for "not specified", as infinity does.
fn limit(duration: Duration) -> Option<Duration> {
    (!duration.is_zero() && duration.as_secs() < INFINITE_S).then_some(duration)
}

impl From<&Profile> for QosProfile {
    fn from(profile: &Profile) -> Self {
        QosProfile {
            reliability: match profile.reliability {
                Reliability::BestEffort => ReliabilityPolicy::BestEffort,
                Reliability::Reliable => ReliabilityPolicy::Reliable,
                Reliability::SystemDefault => ReliabilityPolicy::SystemDefault,
            },
            durability: match profile.durability {
                Durability::Volatile => DurabilityPolicy::Volatile,
                Durability::TransientLocal => DurabilityPolicy::TransientLocal,
                Durability::SystemDefault => DurabilityPolicy::SystemDefault,
            },
            history: match profile.history {
                History::KeepLast => HistoryPolicy::KeepLast,
                History::KeepAll => HistoryPolicy::KeepAll,
                History::SystemDefault => HistoryPolicy::SystemDefault,
            },
            depth: profile.depth,
            deadline: profile.deadline.unwrap_or_default(),
            liveliness: match profile.liveliness {
                Liveliness::Automatic => LivelinessPolicy::Automatic,
                Liveliness::ManualByTopic => LivelinessPolicy::ManualByTopic,
            },
            liveliness_lease_duration: profile.lease.unwrap_or_default(),
            ..QosProfile::default()
        }
    }
}
