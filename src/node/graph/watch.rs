//! What is told of the graph, and when.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::super::qos::{Profile, conflicts};
use super::{Incompatible, InputFindings, Watched, WrongType};

/// Publishers that say nothing for so long are silent.
pub const SILENCE: Duration = Duration::from_secs(3);
/// The silence of one topic is told at most once in this time.
const SILENCE_PERIOD: Duration = Duration::from_secs(60);

/// How a node is called that has no name.
pub const NAMELESS: &str = "a node without a name";

/// A publisher, as the graph shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Of this publisher alone.
    pub id: Vec<u8>,
    /// Full name of its node; `None` where the graph does not know it, or not yet.
    pub node: Option<String>,
    pub message_type: String,
    pub offered: Profile,
}

/// One topic at the moment of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    pub publishers: Vec<Endpoint>,
    /// Messages that have come since the subscription.
    pub received: u64,
}

/// Compares what it sees with what it saw before.
#[derive(Debug)]
pub struct Watch {
    topics: Vec<(Watched, Known)>,
}

/// What is known of one topic.
#[derive(Debug, Default)]
struct Known {
    /// Publishers that were told to be of no use.
    told: HashSet<Vec<u8>>,
    /// Publishers whose node had no name at the last look.
    nameless: HashSet<Vec<u8>>,
    received: u64,
    /// Since when there are publishers that can be received and nothing has come from them.
    quiet_since: Option<Instant>,
    /// Whether this silence was told.
    silence_told: bool,
    silence_told_at: Option<Instant>,
}

impl Watch {
    pub fn new(topics: Vec<Watched>) -> Self {
        Self { topics: topics.into_iter().map(|topic| (topic, Known::default())).collect() }
    }

    /// Takes a look: one sight per topic, in the order of the topics. Gives back the findings, and sentences for what was
    /// not told before.
    pub fn look(&mut self, now: Instant, sights: Vec<Sight>) -> (Vec<InputFindings>, Vec<String>) {
        let mut warnings = Vec::new();
        let topics = self.topics.iter_mut().zip(sights);
        let findings = topics
            .map(|((watched, known), sight)| known.look(watched, now, sight, &mut warnings))
            .collect();
        (findings, warnings)
    }
}

impl Known {
    fn look(
        &mut self,
        watched: &Watched,
        now: Instant,
        sight: Sight,
        warnings: &mut Vec<String>,
    ) -> InputFindings {
        let mut found = InputFindings {
            input: watched.input.clone(),
            topic: watched.topic.clone(),
            publishers: Vec::new(),
            wrong_type: Vec::new(),
            incompatible: Vec::new(),
            silent: false,
        };
        self.told.retain(|id| sight.publishers.iter().any(|publisher| publisher.id == *id));
        let unnamed = sight.publishers.iter().filter(|publisher| publisher.node.is_none());
        let unnamed = unnamed.map(|publisher| publisher.id.clone()).collect();
        let nameless = std::mem::replace(&mut self.nameless, unnamed);
        for Endpoint { id, node, message_type, offered } in sight.publishers {
            // A name comes later than its publisher, if there is one.
            let known = node.is_some() || nameless.contains(&id);
            let node = node.unwrap_or_else(|| NAMELESS.to_owned());
            let id = known.then_some(id);
            let policies = conflicts(&offered, &watched.requested);
            if message_type != watched.message_type {
                let wrong = WrongType {
                    node,
                    message_type,
                    read: watched.message_type.clone(),
                    parameter: watched.type_parameter.clone(),
                };
                self.tell(id, warnings, || told(watched, &wrong.to_string()));
                found.wrong_type.push(wrong);
            } else if policies.is_empty() {
                found.publishers.push(node);
            } else {
                let requested = watched.requested.clone();
                let incompatible = Incompatible { node, offered, requested, policies };
                let sentence = || incompatible.sentence(&watched.topic);
                self.tell(id, warnings, || told(watched, &sentence()));
                found.incompatible.push(incompatible);
            }
        }
        self.listen(watched, now, sight.received, &mut found, warnings);
        found
    }

    /// Tells something of a publisher once; of one without an id, later.
    fn tell(
        &mut self,
        id: Option<Vec<u8>>,
        warnings: &mut Vec<String>,
        warning: impl Fn() -> String,
    ) {
        if id.is_some_and(|id| self.told.insert(id)) {
            warnings.push(warning());
        }
    }

    fn listen(
        &mut self,
        watched: &Watched,
        now: Instant,
        received: u64,
        found: &mut InputFindings,
        warnings: &mut Vec<String>,
    ) {
        let came = received != self.received;
        self.received = received;
        let has_said_all = watched.latched && received > 0;
        if found.publishers.is_empty() || has_said_all {
            self.quiet_since = None;
            self.silence_told = false;
            return;
        }
        if came {
            self.quiet_since = Some(now);
            self.silence_told = false;
        }
        let quiet = now.duration_since(*self.quiet_since.get_or_insert(now));
        found.silent = quiet >= SILENCE;
        let lately = self.silence_told_at.is_some_and(|at| now.duration_since(at) < SILENCE_PERIOD);
        if found.silent && !self.silence_told && !lately {
            self.silence_told = true;
            self.silence_told_at = Some(now);
            warnings.push(silence(watched, &found.publishers, quiet));
        }
    }
}

/// A sentence about a publisher of a topic.
fn told(watched: &Watched, sentence: &str) -> String {
    format!("{} ({}): {sentence}", watched.topic, watched.input)
}

fn silence(watched: &Watched, publishers: &[String], quiet: Duration) -> String {
    format!(
        "{} ({}): {} publishes there and matches, but nothing has come for {:.1} s. Likely: the driver has stalled; \
         messages are too large for the UDP buffers (net.core.rmem_max); or shared memory does not reach between \
         users or containers. `gr00t_blackhole doctor` checks these",
        watched.topic,
        watched.input,
        publishers.join(", "),
        quiet.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::qos::Policy;
    use super::*;

    const IMAGE: &str = "sensor_msgs/msg/Image";

    fn watch(requested: Profile, latched: bool) -> Watch {
        Watch::new(vec![Watched {
            input: "camera 'ego'".to_owned(),
            topic: "/ego/image".to_owned(),
            message_type: IMAGE.to_owned(),
            type_parameter: "camera.ego.transport".to_owned(),
            requested,
            latched,
        }])
    }

    fn publisher(id: u8, message_type: &str, offered: Profile) -> Endpoint {
        let (id, message_type) = (vec![id], message_type.to_owned());
        Endpoint { id, node: Some("/driver".to_owned()), message_type, offered }
    }

    fn camera(id: u8) -> Endpoint {
        publisher(id, IMAGE, Profile::SENSOR_DATA)
    }

    /// Looks once, at `seconds` after `start`.
    fn look(
        watch: &mut Watch,
        start: Instant,
        seconds: f64,
        publishers: &[Endpoint],
        received: u64,
    ) -> (InputFindings, Vec<String>) {
        let sight = Sight { publishers: publishers.to_vec(), received };
        let (mut found, warnings) =
            watch.look(start + Duration::from_secs_f64(seconds), vec![sight]);
        (found.remove(0), warnings)
    }

    #[test]
    fn case_26_incompatible_qos_is_told_once_with_both_profiles_and_the_fix() {
        let (mut watch, start) = (watch(Profile::reliable(5), false), Instant::now());
        let both = [camera(1), publisher(2, IMAGE, Profile::reliable(10))];
        let (found, warnings) = look(&mut watch, start, 0.0, &both, 0);
        assert_eq!(found.publishers, ["/driver"]);
        assert_eq!(found.incompatible[0].policies, [Policy::Reliability]);
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        for part in [
            "/ego/image (camera 'ego'): /driver",
            "incompatible reliability",
            "(best_effort, volatile, keep_last 5)",
            "(reliable, volatile, keep_last 5)",
            "`qos_overrides./ego/image.subscription.reliability` to best_effort",
        ] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        assert_eq!(look(&mut watch, start, 1.0, &both, 1).1, [] as [&str; 0]);
        // One that comes later is told by itself.
        let third = [camera(1), camera(3)];
        assert_eq!(look(&mut watch, start, 2.0, &third, 2).1.len(), 1);
    }

    #[test]
    fn another_type_is_told_once() {
        let (mut watch, start) = (watch(Profile::SENSOR_DATA, false), Instant::now());
        let other = [publisher(1, "sensor_msgs/msg/CompressedImage", Profile::SENSOR_DATA)];
        let (found, warnings) = look(&mut watch, start, 0.0, &other, 0);
        assert_eq!(found.publishers, [] as [&str; 0]);
        assert_eq!(found.wrong_type[0].node, "/driver");
        assert!(warnings[0].contains("publishes sensor_msgs/msg/CompressedImage"), "{warnings:?}");
        assert!(warnings[0].contains("sensor_msgs/msg/Image is read"), "{warnings:?}");
        assert!(warnings[0].contains("`camera.ego.transport`"), "{warnings:?}");
        let (found, warnings) = look(&mut watch, start, 9.0, &other, 0);
        // Nobody can be heard, so that nobody is silent.
        assert!(!found.silent && warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn a_publisher_is_told_with_its_name_if_that_comes_soon() {
        let nameless = |id| Endpoint { node: None, ..publisher(id, "other", Profile::SENSOR_DATA) };
        let named = publisher(1, "other", Profile::SENSOR_DATA);
        let (mut watch, start) = (watch(Profile::SENSOR_DATA, false), Instant::now());
        let both = [nameless(1), nameless(2)];
        assert_eq!(look(&mut watch, start, 0.0, &both, 0).1, [] as [&str; 0]);
        let (_, warnings) = look(&mut watch, start, 1.0, &[named, nameless(2)], 0);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("/driver publishes other"), "{warnings:?}");
        assert!(warnings[1].contains("a node without a name publishes other"), "{warnings:?}");
    }

    #[test]
    fn a_matched_publisher_that_says_nothing_is_told_once() {
        let (mut watch, start) = (watch(Profile::SENSOR_DATA, false), Instant::now());
        let mut told = Vec::new();
        for second in 0..200 {
            let (found, warnings) = look(&mut watch, start, f64::from(second), &[camera(1)], 0);
            assert_eq!(found.silent, second >= 3);
            told.extend(warnings.into_iter().map(|warning| (second, warning)));
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, 3);
        assert!(told[0].1.contains("/driver publishes there and matches"), "{told:?}");
    }

    #[test]
    fn silence_after_messages_is_told_again_at_most_once_a_minute() {
        let (mut watch, start) = (watch(Profile::SENSOR_DATA, false), Instant::now());
        let mut told = Vec::new();
        // Every ten seconds one message.
        for second in 0..130_u32 {
            let received = u64::from(second / 10);
            let (_, warnings) = look(&mut watch, start, f64::from(second), &[camera(1)], received);
            told.extend(warnings.iter().map(|_| second));
        }
        assert_eq!(told, [3, 63, 123]);
    }

    #[test]
    fn a_publisher_that_comes_after_a_while_has_its_time() {
        let (mut watch, start) = (watch(Profile::SENSOR_DATA, false), Instant::now());
        look(&mut watch, start, 0.0, &[camera(1)], 0);
        look(&mut watch, start, 2.0, &[], 0);
        let (found, _) = look(&mut watch, start, 4.0, &[camera(2)], 0);
        assert!(!found.silent);
        assert!(look(&mut watch, start, 7.0, &[camera(2)], 0).0.silent);
    }

    #[test]
    fn a_latched_topic_that_has_spoken_may_be_quiet() {
        for (received, silent) in [(0, true), (1, false)] {
            let (mut watch, start) = (watch(Profile::latched(1), true), Instant::now());
            let latched = [publisher(1, IMAGE, Profile::latched(1))];
            look(&mut watch, start, 0.0, &latched, received);
            let (found, _) = look(&mut watch, start, 10.0, &latched, received);
            assert_eq!(found.silent, silent, "{received} received");
        }
    }
}
