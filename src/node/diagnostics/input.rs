//! The state of one input.

use super::super::graph::{InputFindings, WrongType};
use super::super::stats::InputStats;
use super::status::{Level, Status, in_s};
use crate::history::{Cause, Moment, WaitingFor};

/// What is known of an input.
pub struct InputView<'a> {
    pub name: String,
    pub topic: &'a str,
    pub stats: &'a InputStats,
    /// What keeps the policy from seeing it.
    pub lack: Option<&'a WaitingFor>,
    /// Age beyond which it is stale.
    pub limit_ns: i64,
    /// Who publishes on its topic; `None` where nobody has looked yet.
    pub graph: Option<&'a InputFindings>,
    pub now: Moment,
}

impl InputView<'_> {
    pub fn status(self) -> Status {
        let (level, message) = self.state();
        let Self { name, topic, stats, limit_ns, graph, now, .. } = self;
        let now_ns = now.steady_ns;
        let mut status = Status::new(name, level, message);
        status.value("topic", topic);
        status.value("rate [Hz]", format!("{:.1}", stats.hz(now_ns)));
        let expected = stats.expected_hz();
        status.value_if("expected rate [Hz]", expected.map(|hz| format!("{hz:.1}")));
        let age = stats.newest_stamp_ns().map(|stamp_ns| now.ros_ns.saturating_sub(stamp_ns));
        status.value_if("age [s]", age.map(in_s));
        status.value("age limit [s]", in_s(limit_ns));
        status.value("received", stats.received());
        status.value("lost", stats.lost());
        status.value("refused", stats.refused_count());
        status.value("latest refusal", stats.latest_refusal().unwrap_or("none"));
        status.value("overtaken", stats.overtaken_count());
        status.value_if("publishers", graph.map(|found| found.publishers.len()));
        let unheard = graph.map(|found| found.wrong_type.len() + found.incompatible.len());
        status.value_if("publishers that cannot be heard", unheard);
        status
    }

    fn state(&self) -> (Level, String) {
        let now_ns = self.now.steady_ns;
        if let Some(lack) = self.lack {
            let level = if lack.cause() == Cause::Missing { Level::Stale } else { Level::Error };
            let reason = self.graph.and_then(reason).map(|reason| format!("; {reason}"));
            return (level, format!("{lack}{}", reason.unwrap_or_default()));
        }
        if let Some(unheard) = self.graph.and_then(unheard) {
            return (Level::Warn, unheard);
        }
        if self.stats.refused_recently(now_ns) {
            let reason = self.stats.latest_refusal().unwrap_or_default();
            return (Level::Warn, format!("messages are refused: {reason}"));
        }
        if self.stats.lost_recently(now_ns) {
            return (Level::Warn, "messages are lost on the way".to_owned());
        }
        (Level::Ok, format!("{:.1} Hz", self.stats.hz(now_ns)))
    }
}

/// Why nothing may come, as far as the graph tells.
fn reason(found: &InputFindings) -> Option<String> {
    unheard(found).or_else(|| match found.publishers.as_slice() {
        [] => Some("nobody publishes there".to_owned()),
        publishers if found.silent => Some(format!("{} has gone silent", publishers.join(", "))),
        _ => None,
    })
}

/// A publisher whose messages cannot arrive.
fn unheard(found: &InputFindings) -> Option<String> {
    let wrong_type = found.wrong_type.first().map(WrongType::to_string);
    wrong_type.or_else(|| Some(found.incompatible.first()?.sentence(&found.topic)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::history::Lack;

    const MS: i64 = 1_000_000;
    const NOW: Moment = Moment { ros_ns: 9_000_000 * MS, steady_ns: 20_000 * MS };

    fn view<'a>(stats: &'a InputStats, lack: Option<&'a WaitingFor>) -> InputView<'a> {
        InputView {
            name: "policy: camera ego".to_owned(),
            topic: "/ego",
            stats,
            lack,
            limit_ns: 250 * MS,
            graph: None,
            now: NOW,
        }
    }

    fn camera(lack: Lack) -> WaitingFor {
        WaitingFor::Camera { key: "ego".to_owned(), topic: "/ego".to_owned(), lack }
    }

    fn rogue() -> WrongType {
        WrongType {
            node: "/rogue".to_owned(),
            message_type: "std_msgs/msg/String".to_owned(),
            read: "sensor_msgs/msg/Image".to_owned(),
            parameter: "camera.ego.transport".to_owned(),
        }
    }

    const ROGUE: &str = "/rogue publishes std_msgs/msg/String there, but sensor_msgs/msg/Image is read; none of it \
                         arrives; parameter `camera.ego.transport` says which type is read";

    /// A camera at 25 Hz whose newest frame is 30 ms old.
    fn stats() -> InputStats {
        let mut stats = InputStats::default();
        for i in (0..100).rev() {
            let ago = i * 40 * MS;
            let stamp = NOW.ros_ns - ago - 30 * MS;
            stats.taken(Some(stamp), stamp, NOW.steady_ns - ago - 10 * MS, Duration::ZERO);
        }
        stats
    }

    #[test]
    fn a_camera_that_is_well() {
        let status = view(&stats(), None).status();
        assert_eq!((status.level, status.name.as_str()), (Level::Ok, "policy: camera ego"));
        let expected = [
            ("topic", "/ego"),
            ("expected rate [Hz]", "25.0"),
            ("age [s]", "0.030"),
            ("age limit [s]", "0.250"),
            ("received", "100"),
            ("lost", "0"),
            ("refused", "0"),
            ("latest refusal", "none"),
            ("overtaken", "0"),
            ("publishers", "unknown"),
        ];
        for (key, value) in expected {
            assert_eq!(status.get(key), Some(value), "{key}");
        }
        let rate: f64 = status.get("rate [Hz]").expect("a rate").parse().expect("a number");
        assert!((rate - 25.0).abs() < 0.5, "{rate}");
    }

    #[test]
    fn case_01_a_camera_that_has_stopped_is_an_error_that_names_it() {
        let stale = camera(Lack::Stale {
            age_ns: 400 * MS,
            max_age_ns: 250 * MS,
            silent_ns: Some(390 * MS),
            refusal: None,
        });
        let status = view(&stats(), Some(&stale)).status();
        assert_eq!(status.level, Level::Error);
        assert!(status.message.contains("camera 'ego' (topic /ego)"), "{}", status.message);
        assert!(status.message.contains("0.400 s old"), "{}", status.message);
    }

    #[test]
    fn case_95_a_camera_that_has_never_sent_is_stale() {
        let (missing, stats) = (camera(Lack::Nothing { refusal: None }), InputStats::default());
        let mut view = view(&stats, Some(&missing));
        let mut found = InputFindings {
            input: "camera 'ego'".to_owned(),
            topic: "/ego".to_owned(),
            publishers: vec![],
            wrong_type: vec![],
            incompatible: vec![],
            silent: false,
        };
        view.graph = Some(&found);
        let status = view.status();
        assert_eq!(status.level, Level::Stale);
        assert!(status.message.ends_with("no frame yet; nobody publishes there"), "{status:?}");
        assert_eq!(status.get("age [s]"), Some("unknown"));
        assert_eq!(status.get("expected rate [Hz]"), Some("unknown"));
        assert_eq!(status.get("publishers"), Some("0"));

        found.publishers.push("/driver".to_owned());
        found.silent = true;
        let mut view = self::view(&stats, Some(&missing));
        view.graph = Some(&found);
        assert!(view.status().message.ends_with("; /driver has gone silent"));

        found.wrong_type.push(rogue());
        let mut view = self::view(&stats, Some(&missing));
        view.graph = Some(&found);
        let status = view.status();
        assert!(status.message.ends_with(&format!("; {ROGUE}")), "{}", status.message);
        assert_eq!(status.get("publishers that cannot be heard"), Some("1"));
    }

    #[test]
    fn a_publisher_that_cannot_be_heard_beside_one_that_can_is_a_warning() {
        let found = InputFindings {
            input: "camera 'ego'".to_owned(),
            topic: "/ego".to_owned(),
            publishers: vec!["/driver".to_owned()],
            wrong_type: vec![rogue()],
            incompatible: vec![],
            silent: false,
        };
        let stats = stats();
        let mut view = view(&stats, None);
        view.graph = Some(&found);
        let status = view.status();
        assert_eq!((status.level, status.message.as_str()), (Level::Warn, ROGUE));
    }

    #[test]
    fn refused_and_lost_messages_are_a_warning() {
        let mut stats = stats();
        stats.refused("step is 7", NOW.steady_ns);
        let status = view(&stats, None).status();
        assert_eq!(status.level, Level::Warn);
        assert_eq!(status.message, "messages are refused: step is 7");
        assert_eq!(status.get("refused"), Some("1"));
        let mut stats = self::stats();
        let stamp = NOW.ros_ns + 170 * MS;
        stats.taken(Some(stamp), stamp, NOW.steady_ns, Duration::ZERO);
        let status = view(&stats, None).status();
        assert_eq!((status.level, status.get("lost")), (Level::Warn, Some("4")));
    }
}
