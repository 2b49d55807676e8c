//! Listening to a running robot: the facts that [`super::topics`] judges.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use futures::{FutureExt, Stream, StreamExt};
use r2r::rosgraph_msgs::msg::Clock;
use r2r::{Node, QosProfile};

use super::finding::{Finding, Level};
use super::given;
use super::input::{Input, Role, inputs};
use super::read::read;
use super::topics::{self, Heard, Listened, Newest, Publisher};
use crate::cli::WrongUsage;
use crate::encode::FrameShapes;
use crate::history::{Moment, TRANSFORM, Waiting, WaitingFor};
use crate::node::arguments::{self, create_node};
use crate::node::graph::{NAMELESS, PARAMETER_EVENTS, full_name};
use crate::node::messages::TfMessage;
use crate::node::params::{Params, Value};
use crate::node::remap::Remaps;
use crate::node::sensors::Sensors;
use crate::node::settings::{self, Settings};

/// The name of the node whose arguments these are, unless they give another.
const NODE_NAME: &str = "policy";
const CLOCK: &str = "/clock";
/// Longest wait for the first message of every topic, before listening begins.
const DISCOVERY: Duration = Duration::from_secs(2);
/// How long one wait for messages lasts.
const SPIN: Duration = Duration::from_millis(5);

/// A place in the ROS graph, under the name of the node that is to be started.
pub struct Live {
    node: Node,
    remaps: Remaps,
}

/// One topic while it is listened to.
struct Listener {
    input: Input,
    messages: Box<dyn Stream<Item = Vec<u8>> + Unpin>,
    heard: Heard,
    newest: Option<(Moment, Vec<u8>)>,
}

/// The clock of the node that is to be started, beside one that only goes forward.
struct Watch {
    start: Instant,
    simulated: bool,
    /// What `/clock` last said [ns].
    simulated_ns: Option<i64>,
    ticks: Box<dyn Stream<Item = Clock> + Unpin>,
}

impl Live {
    /// Joins the graph with the ROS arguments of this process, which are `arguments`.
    ///
    /// # Errors
    /// Arguments that ROS refuses.
    pub fn new(arguments: &[String]) -> Result<Self> {
        if let Some(first) = arguments.first().filter(|first| *first != "--ros-args") {
            let text = format!(
                "'{first}' is not an argument of doctor; ROS arguments begin with --ros-args"
            );
            return Err(WrongUsage(text).into());
        }
        let node = create_node(NODE_NAME)?;
        let remaps = Remaps::new(arguments, &node.namespace()?, &node.fully_qualified_name()?);
        Ok(Self { node, remaps })
    }

    /// Parameters from files and from the command line.
    pub fn overrides(&self) -> Vec<(String, Value)> {
        arguments::overrides(&self.node)
    }

    /// Listens to every topic of the settings for so many seconds, and judges what came.
    ///
    /// # Errors
    /// What ROS refuses, such as the name of a topic.
    pub fn check(
        &mut self,
        mut settings: Settings,
        shapes: &FrameShapes,
        mut params: Params,
        wait_s: f64,
    ) -> Result<Vec<Finding>> {
        let name = self.node.fully_qualified_name()?;
        settings.resolve_topics(&self.remaps);
        let topics = match given::topics(&settings, &self.remaps, &mut params) {
            Ok(topics) => topics,
            Err(findings) => return Ok(findings),
        };
        let inputs = inputs(&settings, &topics, &params);
        let mut listeners = Vec::new();
        for input in inputs {
            listeners.push(Listener::new(&mut self.node, input)?);
        }
        let simulated = params.bool("use_sim_time");
        let mut watch = Watch::new(&mut self.node, simulated)?;
        let mut sensors = Sensors::new(&settings);
        // Peers that are still finding each other are no lossy link.
        let all_heard = |listeners: &[Listener]| listeners.iter().all(|l| l.heard.messages > 0);
        while watch.start.elapsed() < DISCOVERY && !all_heard(&listeners) {
            self.listen(&mut watch, &mut listeners, &mut sensors, &settings);
        }
        let begin = Instant::now();
        for listener in &mut listeners {
            listener.begin();
        }
        while begin.elapsed().as_secs_f64() < wait_s {
            self.listen(&mut watch, &mut listeners, &mut sensors, &settings);
        }

        let clock_publishers: Vec<String> =
            self.publishers(CLOCK)?.into_iter().map(|publisher| publisher.node).collect();
        // This process is not among them.
        let nodes = self.publishers(PARAMETER_EVENTS)?;
        let namesakes = nodes.iter().filter(|other| other.node == name).count();
        let mut findings = vec![
            topics::name(&name, namesakes),
            topics::clock(simulated, &clock_publishers, watch.simulated_ns),
        ];
        let published = self.published(&listeners)?;
        let poses = poses(&mut sensors, &settings, &params, watch.now());
        let listened = Listened {
            seconds: wait_s,
            until_ns: watch.now().steady_ns,
            rate_hz: settings.period_ns.map(|period_ns| 1e9 / period_ns as f64),
            topics: &published,
            poses_known: poses.iter().all(|finding| finding.level != Level::Fail),
        };
        for listener in listeners {
            let publishers = self.publishers(&listener.input.topic)?;
            let (input, heard) = listener.heard(&settings, shapes);
            findings.extend(topics::check(&input, &publishers, &heard, listened));
        }
        findings.extend(poses);
        Ok(findings)
    }

    fn listen(
        &mut self,
        watch: &mut Watch,
        listeners: &mut [Listener],
        sensors: &mut Sensors,
        settings: &Settings,
    ) {
        self.node.spin_once(SPIN);
        watch.look();
        for listener in listeners {
            listener.take(watch, sensors, settings);
        }
    }

    fn publishers(&self, topic: &str) -> Result<Vec<Publisher>> {
        let found = self.node.get_publishers_info_by_topic(topic, false);
        let found = found.with_context(|| format!("cannot ask who publishes {topic}"))?;
        let publishers = found.into_iter().map(|info| Publisher {
            node: full_name(&info.node_namespace, &info.node_name)
                .unwrap_or_else(|| NAMELESS.to_owned()),
            message_type: info.topic_type,
            qos: (&info.qos_profile).into(),
        });
        Ok(publishers.collect())
    }

    /// Topics that somebody publishes and no listener is for, with their types, sorted.
    fn published(&self, listeners: &[Listener]) -> Result<Vec<(String, String)>> {
        let mut published = Vec::new();
        for (topic, types) in self.node.get_topic_names_and_types()? {
            let ours = listeners.iter().any(|listener| listener.input.topic == topic);
            if !ours && !self.publishers(&topic)?.is_empty() {
                published.extend(types.into_iter().map(|of| (topic.clone(), of)));
            }
        }
        published.sort();
        Ok(published)
    }
}

impl Listener {
    fn new(node: &mut Node, input: Input) -> Result<Self> {
        let qos = (&input.qos).into();
        let messages =
            node.subscribe_raw(&input.given, input.message_type, qos).with_context(|| {
                format!("cannot subscribe to '{}' of {}", input.topic, input.subject)
            })?;
        Ok(Self { input, messages: Box::new(messages), heard: Heard::default(), newest: None })
    }

    /// Counts from now on. What holds for all time may have been said already, and stays heard.
    fn begin(&mut self) {
        if self.input.role != (Role::Transforms { fixed: true }) {
            (self.heard, self.newest) = (Heard::default(), None);
        }
    }

    /// Takes what has come in; transforms go to where poses are made of them.
    fn take(&mut self, watch: &Watch, sensors: &mut Sensors, settings: &Settings) {
        while let Some(Some(bytes)) = self.messages.next().now_or_never() {
            let at = watch.now();
            if self.heard.messages == 0 {
                self.heard.first_ns = at.steady_ns;
            }
            self.heard.messages += 1;
            self.heard.last_ns = at.steady_ns;
            if let (Role::Transforms { fixed }, Ok(message)) =
                (self.input.role, TfMessage::from_cdr(&bytes))
            {
                // A transform that is refused is told with the pose that lacks it.
                sensors.insert_transforms(&message, fixed, at, settings.timeline);
            }
            self.newest = Some((at, bytes));
        }
    }

    fn heard(mut self, settings: &Settings, shapes: &FrameShapes) -> (Input, Heard) {
        let newest = self
            .newest
            .map(|(at, bytes)| Newest { at, read: read(self.input.role, bytes, settings, shapes) });
        self.heard.newest = newest;
        (self.input, self.heard)
    }
}

impl Watch {
    fn new(node: &mut Node, simulated: bool) -> Result<Self> {
        let ticks: Box<dyn Stream<Item = Clock> + Unpin> = if simulated {
            Box::new(node.subscribe::<Clock>(CLOCK, QosProfile::sensor_data())?)
        } else {
            Box::new(futures::stream::pending())
        };
        Ok(Self { start: Instant::now(), simulated, simulated_ns: None, ticks })
    }

    fn look(&mut self) {
        while let Some(Some(Clock { clock })) = self.ticks.next().now_or_never() {
            self.simulated_ns =
                Some(i64::from(clock.sec) * 1_000_000_000 + i64::from(clock.nanosec));
        }
    }

    fn now(&self) -> Moment {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ros_ns =
            if self.simulated { self.simulated_ns.unwrap_or(0) } else { nanoseconds(system()) };
        Moment { ros_ns, steady_ns: nanoseconds(self.start.elapsed()) }
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Whether the transforms that came make up the poses that are wanted.
fn poses(sensors: &mut Sensors, settings: &Settings, params: &Params, now: Moment) -> Vec<Finding> {
    if settings.transforms.is_empty() {
        return Vec::new();
    }
    let gates = settings::gates(params);
    // Cameras and joints have their own lines; here they are missing in any case.
    let Err(Waiting(lacks)) = sensors.observation(now, NODE_NAME, &gates) else {
        return Vec::new();
    };
    let lacks = lacks.into_iter().filter(
        |lack| matches!(lack, WaitingFor::State { topic, .. } if topic.starts_with(TRANSFORM)),
    );
    let fix = "publish the transforms between the two frames, or name others with state.<group>.base_frame and tip_frame";
    let mut findings: Vec<Finding> =
        lacks.map(|lack| Finding::fail("poses", lack.to_string(), fix)).collect();
    if findings.is_empty() {
        findings.push(Finding::ok("poses", format!("all {} are known", settings.transforms.len())));
    }
    findings
}
