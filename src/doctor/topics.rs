//! What the robot's topics were found to do, against what the node needs of them.

use super::finding::{Finding, Level};
use super::input::{Input, Role};
use crate::history::{Moment, Timeline, seconds};
use crate::node::qos::{Policy, Profile, conflicts};

/// Somebody who publishes a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// Full name of its node.
    pub node: String,
    pub message_type: String,
    pub qos: Profile,
}

/// What was heard on a topic while it was listened to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub messages: u64,
    /// Receipt of the first and of the last message, on the steady clock [ns].
    pub first_ns: i64,
    pub last_ns: i64,
    /// The last message.
    pub newest: Option<Newest>,
}

/// The last message of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// When it came.
    pub at: Moment,
    /// Its header stamp, `None` where it has none; or why the node would refuse it.
    pub read: Result<Option<i64>, String>,
}

/// How long, and how the world looked.
#[derive(Clone, Copy, Debug)]
pub struct Listened<'a> {
    pub seconds: f64,
    /// The end of it, on the steady clock [ns].
    pub until_ns: i64,
    /// Predictions per second that the node aims at; `None` without a timer.
    pub rate_hz: Option<f64>,
    /// Topics of the graph that somebody publishes, with their types.
    pub topics: &'a [(String, String)],
    /// Whether the transforms that came make up every pose that is wanted.
    pub poses_known: bool,
}

/// Checks one topic.
pub fn check(
    input: &Input,
    publishers: &[Publisher],
    heard: &Heard,
    listened: Listened<'_>,
) -> Vec<Finding> {
    let subject = format!("{} on {}", input.subject, input.topic);
    if publishers.is_empty() && !input.has_one_publisher() {
        return vec![no_transforms(subject, "nobody publishes it", listened.poses_known)];
    }
    if publishers.is_empty() {
        return vec![nobody(input, subject, listened.topics)];
    }
    let mut findings = Vec::new();
    for publisher in publishers {
        findings.extend(mismatch(input, &subject, publisher));
    }
    if publishers.len() > 1 && input.has_one_publisher() {
        let nodes: Vec<&str> = publishers.iter().map(|publisher| publisher.node.as_str()).collect();
        let found = format!("{} publishers: {}", publishers.len(), nodes.join(", "));
        let fix = "leave one of them, or give each a topic of its own";
        findings.push(Finding::fail(&subject, found, fix));
    }
    // What does not match cannot be heard.
    if findings.iter().any(|finding| finding.level == Level::Fail) && heard.messages == 0 {
        return findings;
    }
    findings.push(flow(input, subject, heard, listened));
    findings
}

/// One of the two topics of transforms may do; the poses have lines of their own.
fn no_transforms(subject: String, found: impl Into<String>, poses_known: bool) -> Finding {
    if poses_known {
        return Finding::ok(subject, found);
    }
    Finding::warn(subject, found, "see the poses that are missing")
}

fn nobody(input: &Input, subject: String, topics: &[(String, String)]) -> Finding {
    let same_type = topics.iter().filter(|(_, of)| of == input.message_type);
    let names: Vec<&str> = same_type.map(|(topic, _)| topic.as_str()).collect();
    let others = if names.is_empty() {
        format!("no topic of {} is published", input.message_type)
    } else {
        format!("of its type there are: {}", names.join(", "))
    };
    let fix = format!("start its driver, or name its topic with {} ({others})", input.parameter);
    Finding::fail(subject, "nobody publishes it", fix)
}

/// Why the node would not hear a publisher.
fn mismatch(input: &Input, subject: &str, publisher: &Publisher) -> Option<Finding> {
    let Publisher { node, message_type, qos } = publisher;
    if message_type != input.message_type {
        let found =
            format!("{node} publishes {message_type}, the node reads {}", input.message_type);
        let fix = match input.role {
            Role::Camera(_) => format!(
                "set camera.<key>.transport to raw or compressed as it is published, or name another topic with {}",
                input.parameter
            ),
            _ => format!(
                "name a topic of that type with {}, or set state.<group>.source",
                input.parameter
            ),
        };
        return Some(Finding::fail(subject, found, fix));
    }
    let policies = conflicts(qos, &input.qos);
    if policies.is_empty() {
        return None;
    }
    let names: Vec<String> = policies.iter().map(Policy::to_string).collect();
    let fixes: Vec<String> = policies.iter().map(|policy| policy.fix(&input.topic, qos)).collect();
    let found = format!(
        "{node} offers QoS ({qos}) where the node asks for ({}): the {} does not suit, not a message arrives",
        input.qos,
        names.join(" and the ")
    );
    let fix = format!("publish it with the QoS that the node asks for, or {}", fixes.join(", "));
    Some(Finding::fail(subject, found, fix))
}

/// How the messages came, and whether the last one is of use.
fn flow(input: &Input, subject: String, heard: &Heard, listened: Listened<'_>) -> Finding {
    let Some(newest) = &heard.newest else {
        return silent(input, subject, listened);
    };
    let stamp_ns = match &newest.read {
        Ok(stamp_ns) => *stamp_ns,
        Err(reason) => {
            let fix = "have the driver send what the node can read, or change the parameters of this input";
            return Finding::fail_as_told(
                subject,
                &format!("the message is refused: {reason}"),
                fix,
            );
        }
    };
    let fixed = matches!(input.role, Role::Transforms { fixed: true });
    let silent_ns = listened.until_ns - heard.last_ns;
    if !fixed && silent_ns > input.max_age_ns {
        let found = format!("nothing for the last {:.1} s", seconds(silent_ns));
        let fix = format!("see why it stopped, or raise {}", input.max_age_parameter);
        return Finding::fail(subject, found, fix);
    }
    let stamped = stamp_ns.map(|stamp| input.timeline.stamp(stamp, newest.at));
    let age_ns = match stamped {
        Some(Err(refused)) => {
            return Finding::fail_as_told(subject, &refused.to_string(), "set timeline to receive");
        }
        Some(Ok(stamp_ns)) if input.timeline == Timeline::Stamp => {
            Some(newest.at.ros_ns.saturating_sub(stamp_ns))
        }
        _ => None,
    };
    if let Some(age_ns) = age_ns.filter(|age_ns| *age_ns > input.max_age_ns) {
        let found = format!(
            "stale: {:.3} s old when it comes (limit {:.3} s)",
            seconds(age_ns),
            seconds(input.max_age_ns)
        );
        let fix = format!(
            "shorten the way, synchronise the clocks of the machines (chrony), or raise {}",
            input.max_age_parameter
        );
        return Finding::fail(subject, found, fix);
    }
    steady(subject, heard, age_ns, fixed, listened.rate_hz)
}

fn silent(input: &Input, subject: String, listened: Listened<'_>) -> Finding {
    let listened_s = listened.seconds;
    if input.role == (Role::Transforms { fixed: false }) {
        // Frames that never move are on /tf_static alone.
        let found = format!("no message in {listened_s} s");
        return no_transforms(subject, found, listened.poses_known);
    }
    let found = format!("it is published, but no message came in {listened_s} s");
    let fix = "see whether the driver runs, and with ros2 topic hz whether others hear it; if they do: run both as the same \
               user with a shared /dev/shm (docker: --ipc host), or send less than the network carries";
    Finding::fail(subject, found, fix)
}

/// A topic whose messages are of use.
fn steady(
    subject: String,
    heard: &Heard,
    age_ns: Option<i64>,
    fixed: bool,
    rate_hz: Option<f64>,
) -> Finding {
    let span_s = seconds(heard.last_ns - heard.first_ns);
    // What holds for all time has no rate, however many say something.
    let has_rate = !fixed && heard.messages > 1 && span_s > 0.0;
    let rate = has_rate.then(|| (heard.messages - 1) as f64 / span_s);
    let mut found = match (rate, heard.messages) {
        (Some(rate), _) => format!("{rate:.1} Hz"),
        (None, 1) => "1 message".to_owned(),
        (None, messages) => format!("{messages} messages"),
    };
    if let Some(age_ns) = age_ns {
        found.push_str(&format!(", {:.0} ms old when it comes", seconds(age_ns) * 1e3));
    }
    match (rate, rate_hz) {
        (Some(rate), Some(wanted)) if rate < wanted => {
            let found = format!("{found}, slower than rate_hz ({wanted:?})");
            Finding::warn(subject, found, "raise the driver's rate, or lower rate_hz")
        }
        _ => Finding::ok(subject, found),
    }
}

/// Checks `/clock` against the parameter `use_sim_time`. `now_ns` is what it last said, if anything.
pub fn clock(simulated: bool, publishers: &[String], now_ns: Option<i64>) -> Finding {
    const SUBJECT: &str = "clock";
    const PLAY: &str = "start the simulation, or play with its clock: ros2 bag play --clock BAG; or set use_sim_time to false";
    match (simulated, publishers) {
        (false, []) => Finding::ok(SUBJECT, "system time, and nobody publishes /clock"),
        (false, [first, ..]) => {
            let found = format!(
                "use_sim_time is false, but {first} publishes /clock: stamps are probably of that clock"
            );
            Finding::warn(SUBJECT, found, "set use_sim_time to true, or end what publishes /clock")
        }
        (true, []) => {
            Finding::fail(SUBJECT, "use_sim_time is true, but nobody publishes /clock", PLAY)
        }
        (true, [_, _, ..]) => {
            let found =
                format!("{} publish /clock: time jumps to and fro", publishers.join(" and "));
            Finding::fail(SUBJECT, found, "leave one of them")
        }
        (true, [only]) => match now_ns {
            None | Some(0) => {
                Finding::fail(SUBJECT, format!("/clock of {only} does not tell the time"), PLAY)
            }
            Some(now_ns) => {
                Finding::ok(SUBJECT, format!("/clock of {only}: {:.3} s", seconds(now_ns)))
            }
        },
    }
}

/// Checks that not more than one node has the full name `node`, which may be the one that is examined; `running` is how
/// many do.
pub fn name(node: &str, running: usize) -> Finding {
    const SUBJECT: &str = "node name";
    match running {
        0 => Finding::ok(SUBJECT, format!("{node} is free")),
        1 => Finding::ok(SUBJECT, format!("{node} is running; no second one may be started")),
        _ => {
            let found = format!("{running} nodes named {node} are running");
            let fix = "end all but one, or give each another name: -r __node:=NAME";
            Finding::warn(SUBJECT, found, fix)
        }
    }
}

#[cfg(test)]
mod tests;
