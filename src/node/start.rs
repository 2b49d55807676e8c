//! Starting the node, and ending it.

use std::panic;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use r2r::{Node, ParameterValue};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::instruction::{INSTRUCTION, check_given};
use super::params::{self, Params, Value};
use super::running::Running;
use super::runtime::locked;
use super::settings::{self, Settings};
use crate::cli::WrongUsage;
use crate::contract::Version;
use crate::policy::{Policy, PolicyOptions, choose_embodiment, open_snapshot};

/// Default name of the node; topics of its own are below it.
const NODE_NAME: &str = "policy";
/// Threads that read messages and answer services.
const TASK_THREADS: usize = 2;

/// The ROS 2 node: camera and joint-state topics in, action chunks out.
#[derive(Debug, Args)]
#[command(after_long_help = parameters_help())]
pub struct NodeArgs {
    /// Print a parameter file with every parameter at its default, and end.
    #[arg(long)]
    default_config: bool,
    /// Version that the checkpoint has to be of: n15, n16 or n17; the same as the parameter `version`.
    #[arg(long)]
    version: Option<Version>,
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
        return crate::cli::print(&params::default_yaml());
    }
    if let Some(first) = args.ros_args.first().filter(|first| *first != "--ros-args") {
        let text = format!(
            "'{first}' is not an argument of the node; ROS arguments begin with --ros-args"
        );
        return Err(usage(text).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(TASK_THREADS)
        .enable_all()
        .build()?;
    let mut end = runtime.block_on(async { Ends::new() })?;
    let node = create_node()?;
    let overrides = with_version(overrides(&node), args.version)?;
    let mut params = Params::new(overrides).map_err(usage)?;
    let options = policy_options(&params)?;
    let settings = fit_to_robot(&mut params, &options)?;
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
    check_given(&policy.instruction_check(), params.text(INSTRUCTION)).map_err(usage)?;
    let (running, mut faults) = Running::start(&runtime, node, policy, params, settings)?;
    let fault = runtime.block_on(async {
        tokio::select! {
            () = end.wait() => None,
            fault = faults.recv() => fault,
        }
    });
    let clean = running.stop();
    runtime.shutdown_background();
    if let Some(fault) = fault {
        return Err(anyhow!(fault));
    }
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
        Err(_) => Err(usage(
            "ROS 2 refused the arguments after --ros-args (see above); check their spelling and the parameter file",
        )
        .into()),
    }
}

/// Parameters from files and from the command line.
fn overrides(node: &Node) -> Vec<(String, Value)> {
    let given = locked(&node.params);
    given.iter().map(|(name, parameter)| (name.clone(), value(&parameter.value))).collect()
}

/// The argument `--version` as the parameter that it stands for.
fn with_version(
    mut overrides: Vec<(String, Value)>,
    wanted: Option<Version>,
) -> Result<Vec<(String, Value)>, WrongUsage> {
    let Some(wanted) = wanted else { return Ok(overrides) };
    let wanted = Value::Text(wanted.name().to_owned());
    let any = Value::Text("auto".to_owned());
    if let Some((_, given)) = overrides.iter().find(|(name, _)| name == "version")
        && ![&wanted, &any].contains(&given)
    {
        return Err(usage(format!("--version is {wanted}, but parameter 'version' is {given}")));
    }
    overrides.retain(|(name, _)| name != "version");
    overrides.push(("version".to_owned(), wanted));
    Ok(overrides)
}

fn value(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Bool(value) => Value::Bool(*value),
        ParameterValue::Integer(value) => Value::Integer(*value),
        ParameterValue::Double(value) => Value::Double(*value),
        ParameterValue::String(value) => Value::Text(value.clone()),
        ParameterValue::StringArray(values) => Value::Texts(values.clone()),
        ParameterValue::IntegerArray(values) => Value::Integers(values.clone()),
        ParameterValue::DoubleArray(values) => Value::Doubles(values.clone()),
        other => Value::Other(other.type_name()),
    }
}

fn usage(error: impl ToString) -> WrongUsage {
    WrongUsage(error.to_string())
}

fn policy_options(params: &Params) -> Result<PolicyOptions> {
    let given = |name: &str| Some(params.text(name)).filter(|text| !text.is_empty());
    let Some(snapshot) = given("snapshot") else {
        return Err(usage(
            "parameter 'snapshot' is empty; give the snapshot directory of the checkpoint",
        )
        .into());
    };
    Ok(PolicyOptions {
        snapshot: snapshot.into(),
        tokenizer: given("tokenizer").map(Into::into),
        embodiment: given("embodiment").map(str::to_owned),
        data_config: given("data_config").map(str::to_owned),
        letterbox: settings::letterbox(params),
        // The range of the parameter begins at 0.
        threads: usize::try_from(params.integer("threads")).unwrap_or(0),
        version: settings::version(params),
    })
}

/// Declares the parameters that the robot brings and checks them all, before the checkpoint is loaded.
fn fit_to_robot(params: &mut Params, options: &PolicyOptions) -> Result<Settings> {
    let snapshot = open_snapshot(options)?;
    let embodiment = choose_embodiment(&snapshot, options)?;
    params.declare_robot(&settings::names(embodiment)).map_err(usage)?;
    Ok(Settings::new(params, embodiment).map_err(usage)?)
}
