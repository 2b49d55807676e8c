//! Starting the node, and ending it.

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use r2r::{Node, ParameterValue, QosProfile, Timer};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::messages::{CompressedImage, Image, JointState};
use super::params::{self, Params, Value};
use super::publish::Publishers;
use super::runtime::{Counters, NodeClock, Shared, Throttle, locked};
use super::settings::{self, Settings, Transport};
use super::worker::{Job, Worker};
use super::{inputs, param_services, services};
use crate::history::History;
use crate::policy::{Policy, PolicyOptions};

/// Default name of the node; topics of its own are below it.
const NODE_NAME: &str = "policy";
/// Threads that read messages and answer services.
const TASK_THREADS: usize = 2;
/// How long one wait for messages lasts; the node looks at this interval whether it is to end.
const SPIN: Duration = Duration::from_millis(20);
/// What the node waits for is said this often.
const WAITING_PERIOD: Duration = Duration::from_secs(2);
/// A prediction that runs when the node is to end gets this long to notice.
const STOP_LIMIT: Duration = Duration::from_millis(1500);

/// The ROS 2 node: camera and joint-state topics in, action chunks out.
#[derive(Debug, Args)]
#[command(after_long_help = parameters_help())]
pub struct NodeArgs {
    /// Print a parameter file with every parameter at its default, and end.
    #[arg(long)]
    default_config: bool,
    /// ROS arguments, such as `--ros-args --params-file FILE -p instruction:='pick the pear'`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ROS_ARGS")]
    ros_args: Vec<String>,
}

fn parameters_help() -> String {
    format!("Parameters:\n{}", params::help())
}

/// Runs the node until SIGINT or SIGTERM.
///
/// # Errors
/// ROS arguments or parameters that cannot be used, or a checkpoint that does not load.
pub fn run(args: &NodeArgs) -> Result<()> {
    if args.default_config {
        print!("{}", params::default_yaml());
        return Ok(());
    }
    if let Some(first) = args.ros_args.first().filter(|first| *first != "--ros-args") {
        bail!("'{first}' is not an argument of the node; ROS arguments begin with --ros-args");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(TASK_THREADS)
        .enable_all()
        .build()?;
    let mut end = runtime.block_on(async { Ends::new() })?;
    let node = create_node()?;
    let mut params = Params::new(overrides(&node))?;
    let options = policy_options(&params)?;
    info!("loading {}", options.snapshot.display());
    let loading = runtime.spawn_blocking(move || Policy::load(&options));
    let policy = runtime.block_on(async {
        tokio::select! {
            loaded = loading => Some(loaded),
            () = end.wait() => None,
        }
    });
    let Some(policy) = policy else {
        info!("ended while loading");
        // The thread that loads cannot be interrupted; nothing that it does outlives the process.
        std::process::exit(0);
    };
    let policy = policy.context("loading the checkpoint panicked")??;
    check_version(&params, &policy)?;
    params.declare_robot(&settings::names(policy.embodiment()))?;
    let settings = Settings::new(&params, policy.embodiment())?;
    let running = Running::start(&runtime, node, policy, params, settings)?;
    runtime.block_on(end.wait());
    info!("ending");
    let clean = running.stop();
    runtime.shutdown_background();
    if !clean {
        warn!("the running prediction did not end in time and is abandoned");
        std::process::exit(0);
    }
    Ok(())
}

/// SIGINT and SIGTERM, from the moment this exists.
struct Ends {
    interrupt: Signal,
    terminate: Signal,
}

impl Ends {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// rcl's own complaint about bad arguments goes to standard error; the panic that follows is turned into an error.
fn create_node() -> Result<Node> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let created = panic::catch_unwind(|| {
        r2r::Context::create().and_then(|context| Node::create(context, NODE_NAME, ""))
    });
    panic::set_hook(hook);
    match created {
        Ok(node) => node.context("the ROS 2 node could not be created"),
        Err(_) => Err(anyhow!(
            "ROS 2 refused the arguments after --ros-args (see above); check their spelling and the parameter file"
        )),
    }
}

/// Parameters from files and from the command line.
fn overrides(node: &Node) -> Vec<(String, Value)> {
    let given = locked(&node.params);
    given.iter().map(|(name, parameter)| (name.clone(), value(&parameter.value))).collect()
}

fn value(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Bool(value) => Value::Bool(*value),
        ParameterValue::Integer(value) => Value::Integer(*value),
        ParameterValue::Double(value) => Value::Double(*value),
        ParameterValue::String(value) => Value::Text(value.clone()),
        ParameterValue::StringArray(values) => Value::Texts(values.clone()),
        other => Value::Other(other.type_name()),
    }
}

fn policy_options(params: &Params) -> Result<PolicyOptions> {
    let given = |name: &str| Some(params.text(name)).filter(|text| !text.is_empty());
    let Some(snapshot) = given("snapshot") else {
        bail!("parameter 'snapshot' is empty; give the snapshot directory of the checkpoint");
    };
    Ok(PolicyOptions {
        snapshot: snapshot.into(),
        tokenizer: given("tokenizer").map(Into::into),
        embodiment: given("embodiment").map(str::to_owned),
        // The range of the parameter begins at 0.
        threads: usize::try_from(params.integer("threads")).unwrap_or(0),
    })
}

fn check_version(params: &Params, policy: &Policy) -> Result<()> {
    match settings::version(params) {
        Some(wanted) if wanted != policy.version() => bail!(
            "parameter 'version' is {wanted}, but the checkpoint is {}; set it to auto, or give another snapshot",
            policy.version()
        ),
        _ => Ok(()),
    }
}

/// The node at work.
struct Running {
    worker: Arc<Mutex<Option<Worker>>>,
    spinning: Arc<AtomicBool>,
    spinner: std::thread::JoinHandle<()>,
}

impl Running {
    fn start(
        runtime: &tokio::runtime::Runtime,
        mut node: Node,
        policy: Policy,
        params: Params,
        settings: Settings,
    ) -> Result<Self> {
        if params.bool("use_sim_time") {
            node.get_time_source().enable_sim_time(&mut node)?;
        }
        let publishers = Publishers::new(&mut node)?;
        let shared = Arc::new(Shared {
            clock: NodeClock::new(node.get_ros_clock()),
            version: policy.version(),
            embodiment: policy.embodiment().clone(),
            served: policy.served().to_vec(),
            backend: policy.backend(),
            noise_shape: policy.noise_shape(),
            history: Mutex::new(History::new(settings.inputs())),
            settings,
            params: Mutex::new(params),
            counters: Counters::default(),
        });
        subscribe(runtime, &mut node, &shared)?;
        serve(runtime, &mut node, &shared)?;
        let worker = Worker::start(policy, shared.clone(), publishers)?;
        let worker = Arc::new(Mutex::new(Some(worker)));
        if let Some(rate_hz) = shared.settings.rate_hz {
            let period = Duration::from_secs_f64(1.0 / rate_hz);
            let simulated = locked(&shared.params).bool("use_sim_time");
            let timer =
                if simulated { node.create_timer(period) } else { node.create_wall_timer(period) };
            runtime.spawn(predict_on_time(timer?, shared.clone(), worker.clone()));
        }
        info!(
            "{} for '{}' on {}, ready as {}",
            shared.version,
            shared.embodiment.tag,
            shared.backend,
            node.fully_qualified_name()?
        );
        let spinning = Arc::new(AtomicBool::new(true));
        let go_on = spinning.clone();
        let spinner = std::thread::Builder::new().name("ros-spin".to_owned()).spawn(move || {
            while go_on.load(Ordering::Acquire) {
                node.spin_once(SPIN);
            }
        })?;
        Ok(Self { worker, spinning, spinner })
    }

    /// Ends everything; `false` if a prediction did not stop in time.
    fn stop(self) -> bool {
        let worker = locked(&self.worker).take();
        let stopped = worker.is_none_or(|worker| worker.stop(STOP_LIMIT));
        self.spinning.store(false, Ordering::Release);
        // A spinner that panicked has nothing left to end.
        let _ = self.spinner.join();
        stopped
    }
}

/// One task per topic.
fn subscribe(
    runtime: &tokio::runtime::Runtime,
    node: &mut Node,
    shared: &Arc<Shared>,
) -> Result<()> {
    for (number, camera) in shared.settings.cameras.iter().enumerate() {
        let message_type = match camera.transport {
            Transport::Raw => Image::TYPE,
            Transport::Compressed => CompressedImage::TYPE,
        };
        let messages =
            node.subscribe_raw(&camera.topic, message_type, QosProfile::sensor_data())?;
        info!("camera '{}' on {} ({message_type})", camera.key, camera.topic);
        runtime.spawn(inputs::read_camera(shared.clone(), number, messages));
    }
    for (number, state) in shared.settings.states.iter().enumerate() {
        let messages =
            node.subscribe_raw(&state.topic, JointState::TYPE, QosProfile::sensor_data())?;
        let groups: Vec<&str> = state.joints.groups().collect();
        info!("state {} on {} ({})", groups.join(", "), state.topic, JointState::TYPE);
        runtime.spawn(inputs::read_states(shared.clone(), number, messages));
    }
    Ok(())
}

fn serve(runtime: &tokio::runtime::Runtime, node: &mut Node, shared: &Arc<Shared>) -> Result<()> {
    use r2r::gr00t_blackhole::srv::{GetContract, SetInstruction};

    runtime.spawn(param_services::serve(node, shared)?);
    let qos = QosProfile::services_default;
    let requests = node.create_service::<SetInstruction::Service>("~/set_instruction", qos())?;
    let known = shared.clone();
    runtime.spawn(param_services::answer(requests, move |request: &SetInstruction::Request| {
        services::set_instruction(&known, request)
    }));
    let requests = node.create_service::<GetContract::Service>("~/get_contract", qos())?;
    let known = shared.clone();
    runtime.spawn(param_services::answer(requests, move |request: &GetContract::Request| {
        services::get_contract(&known, request)
    }));
    Ok(())
}

/// Starts a prediction on every tick of the timer, unless one is running or something is missing.
async fn predict_on_time(
    mut timer: Timer,
    shared: Arc<Shared>,
    worker: Arc<Mutex<Option<Worker>>>,
) {
    let mut waiting_notes = Throttle::new(WAITING_PERIOD);
    while timer.tick().await.is_ok() {
        let guard = locked(&worker);
        let Some(worker) = guard.as_ref() else { return };
        if worker.is_busy() {
            shared.counters.missed_ticks.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let (instruction, seed, freshness) = {
            let params = locked(&shared.params);
            let timeline = shared.settings.timeline;
            (
                params.text("instruction").to_owned(),
                settings::seed(&params, shared.version),
                settings::freshness(&params, timeline),
            )
        };
        let now = shared.clock.now();
        let (seen, jump) = {
            let mut history = locked(&shared.history);
            let seen = history.observation(now, &instruction, &freshness);
            (seen, history.take_clock_jump())
        };
        if let Some(jump) = jump {
            warn!(
                "the clock jumped by {:.3} s; all readings are forgotten",
                jump.by_ns as f64 / 1e9
            );
        }
        match seen {
            Ok(sighting) => {
                worker.submit(Job { sighting, seed, begin_ns: now.ros_ns });
            }
            Err(waiting) if waiting_notes.pass().is_some() => info!("waiting for {waiting}"),
            Err(_) => {}
        }
    }
}
