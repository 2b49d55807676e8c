//! The DDS rules of request and offer: a subscription gets nothing from a publisher that offers less than it asks for.

use std::fmt;
use std::time::Duration;

use super::{Durability, Liveliness, Profile, Reliability};

/// A policy in which the two ends of a topic have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Reliability,
    Durability,
    Deadline,
    Liveliness,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Reliability => "reliability",
            Policy::Durability => "durability",
            Policy::Deadline => "deadline",
            Policy::Liveliness => "liveliness",
        })
    }
}

impl Policy {
    /// What the user of a subscription to `topic` can do about a conflict with this offer.
    pub fn fix(self, topic: &str, offered: &Profile) -> String {
        let value = match self {
            Policy::Reliability => offered.reliability.name(),
            Policy::Durability => offered.durability.name(),
            Policy::Deadline | Policy::Liveliness => {
                return format!("let the publisher offer the {self}");
            }
        };
        format!("set parameter `qos_overrides.{topic}.subscription.{self}` to {value}")
    }
}

/// The policies in which a publisher offers less than a subscription asks for; what is not known is no conflict.
pub fn conflicts(offered: &Profile, requested: &Profile) -> Vec<Policy> {
    let reliability = (offered.reliability, requested.reliability)
        == (Reliability::BestEffort, Reliability::Reliable);
    let durability = (offered.durability, requested.durability)
        == (Durability::Volatile, Durability::TransientLocal);
    let liveliness = (offered.liveliness, requested.liveliness)
        == (Liveliness::Automatic, Liveliness::ManualByTopic);
    let all = [
        (Policy::Reliability, reliability),
        (Policy::Durability, durability),
        (Policy::Deadline, longer(offered.deadline, requested.deadline)),
        (Policy::Liveliness, liveliness || longer(offered.lease, requested.lease)),
    ];
    all.into_iter().filter(|(_, conflict)| *conflict).map(|(policy, _)| policy).collect()
}

/// Whether a publisher may take longer than the subscription allows.
fn longer(offered: Option<Duration>, requested: Option<Duration>) -> bool {
    match (offered, requested) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(offered), Some(requested)) => offered > requested,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_26_a_publisher_that_offers_less_is_not_received() {
        let (sensor, reliable, latched) =
            (Profile::SENSOR_DATA, Profile::reliable(10), Profile::latched(1));
        for (offered, requested, expected) in [
            (&sensor, &sensor, vec![]),
            (&reliable, &sensor, vec![]),
            (&latched, &sensor, vec![]),
            (&latched, &latched, vec![]),
            (&sensor, &reliable, vec![Policy::Reliability]),
            (&reliable, &latched, vec![Policy::Durability]),
            (&sensor, &latched, vec![Policy::Reliability, Policy::Durability]),
        ] {
            assert_eq!(conflicts(offered, requested), expected, "{offered} for {requested}");
        }
    }

    #[test]
    fn a_publisher_may_be_faster_than_asked_but_not_slower() {
        let with = |ms: Option<u64>| Profile {
            deadline: ms.map(Duration::from_millis),
            ..Profile::reliable(1)
        };
        for (offered, requested, expected) in [
            (None, None, false),
            (Some(100), None, false),
            (Some(100), Some(100), false),
            (Some(101), Some(100), true),
            (None, Some(100), true),
        ] {
            let found = conflicts(&with(offered), &with(requested));
            assert_eq!(found == [Policy::Deadline], expected, "{offered:?} for {requested:?}");
        }
    }

    #[test]
    fn signs_of_life_are_compared_by_kind_and_by_time() {
        let automatic = Profile::reliable(1);
        let manual = Profile { liveliness: Liveliness::ManualByTopic, ..automatic.clone() };
        let leased = Profile { lease: Some(Duration::from_secs(1)), ..automatic.clone() };
        assert_eq!(conflicts(&automatic, &manual), [Policy::Liveliness]);
        assert_eq!(conflicts(&manual, &automatic), []);
        assert_eq!(conflicts(&automatic, &leased), [Policy::Liveliness]);
        assert_eq!(conflicts(&leased, &leased), []);
    }

    #[test]
    fn what_the_middleware_chooses_is_no_conflict() {
        let any = Profile {
            reliability: Reliability::SystemDefault,
            durability: Durability::SystemDefault,
            ..Profile::reliable(1)
        };
        assert_eq!(conflicts(&any, &Profile::latched(1)), []);
        assert_eq!(conflicts(&Profile::SENSOR_DATA, &any), []);
    }
}
