//! Starting the node, and ending it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use r2r::Node;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing::info;
use tracing::level_filters::LevelFilter;

use super::arguments::{create_node, overrides};
use super::core::Core;
use super::diagnostics::Diagnostics;
use super::engine::{ActionServer, Engine};
use super::follower::Follower;
use super::graph;
use super::lifecycle::machine::Asked;
use super::lifecycle::{self, Manager};
use super::param_services::{self, ParamChanges, Task};
use super::params::{self, Params, Value};
use super::remap::ros_arguments;
use super::rosout;
use super::runtime::{NodeClock, locked};
use super::services;
use super::spin::{self, NodeHandle, Spinner};
use crate::cli::WrongUsage;
use crate::contract::Version;
use crate::notify;

/// Default name of the node; topics of its own are below it.
const NODE_NAME: &str = "policy";
/// Threads that read messages and answer services.
const TASK_THREADS: usize = 2;
/// What runs when the process is to end gets this long.
const END_LIMIT: Duration = Duration::from_millis(1800);

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

impl NodeArgs {
    /// The level of `--ros-args --log-level LEVEL`, which rcl checks; those of single loggers are rcl's alone.
    pub fn log_level(&self) -> Option<LevelFilter> {
        let levels = ros_arguments(&self.ros_args)
            .filter_map(|(option, value)| (option == "--log-level").then_some(value).flatten());
        levels.filter_map(level).last()
    }
}

/// A severity of rcl as a level of this log.
fn level(name: &str) -> Option<LevelFilter> {
    match name.to_ascii_lowercase().as_str() {
        "debug" => Some(LevelFilter::DEBUG),
        "info" => Some(LevelFilter::INFO),
        "warn" => Some(LevelFilter::WARN),
        "error" | "fatal" => Some(LevelFilter::ERROR),
        _ => None,
    }
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
    let ended = runtime.block_on(async {
        let end = Ends::new()?;
        let node = create_node(NODE_NAME)?;
        let overrides = with_version(overrides(&node), args.version)?;
        let params = Params::new(overrides).map_err(usage)?;
        live(node, params, end).await
    });
    runtime.shutdown_background();
    match ended? {
        Ended::Clean => Ok(()),
        // A thread that loads or predicts cannot be interrupted; nothing that it does outlives the process.
        Ended::Abandoned => std::process::exit(0),
    }
}

enum Ended {
    Clean,
    /// Something still runs.
    Abandoned,
}

/// The life of the node, from its first service to a signal or to a fault that it cannot live with.
async fn live(mut node: Node, params: Params, mut end: Ends) -> Result<Ended> {
    let autostart = params.bool("autostart");
    if params.bool("use_sim_time") {
        node.get_time_source().enable_sim_time(&mut node)?;
    }
    let (name, namespace) = (node.fully_qualified_name()?, node.namespace()?);
    let clock = NodeClock::new(node.get_ros_clock());
    let log = rosout::publish(&mut node, &name)?;
    let core = Arc::new(Core::new(name, namespace, clock, params));
    let (events, inbox) = unbounded_channel();
    let (fault, mut faults) = unbounded_channel();

    let (handle, asked) = spin::handle();
    let (server, mut tasks) = ActionServer::new(&mut node, &handle, &events)?;
    let (lifecycle, transitions) = lifecycle::Services::new(&mut node, &handle)?;
    let changes = Arc::new(ParamChanges::new(&mut node, &core, events.clone())?);
    tasks.extend(param_services::serve(&mut node, &handle, &core, &changes)?);
    tasks.extend(services::serve(&mut node, &handle, &core, &changes)?);
    tasks.push(log);
    let controller = controller(&mut node, &core, &mut tasks)?;
    let diagnostics = Diagnostics::new(&mut node)?;
    let spinner = Spinner::spawn(node, asked, fault.clone())?;
    tasks.push(Box::pin(graph::watch_name(core.clone(), handle.clone())));
    tasks.push(Box::pin(keep_alive(handle.clone())));
    let engine = Engine::new(core.clone(), server, inbox, events.clone());
    let known = core.clone();
    let manager = Arc::new(Manager::new(core, handle, events, fault, transitions, controller));
    tasks.push(Box::pin(diagnostics.run(known, manager.clone())));
    tasks.extend(lifecycle.serve(&manager));
    tasks.push(Box::pin(engine.run()));
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();

    let ended = until_the_end(&manager, autostart, &mut end, &mut faults).await;
    // The thread that owns the node ends when nobody can ask it for anything any more.
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
    drop(manager);
    spinner.join();
    ended
}

/// The client of the controller that the parameters name, if they do.
fn controller(
    node: &mut Node,
    core: &Core,
    tasks: &mut Vec<Task>,
) -> Result<Option<Arc<Follower>>> {
    let name = locked(&core.params).text("follow_joint_trajectory").to_owned();
    if name.is_empty() {
        return Ok(None);
    }
    let created = Follower::new(node, &name);
    let (follower, task) = created
        .with_context(|| format!("parameter 'follow_joint_trajectory': no action is '{name}'"))
        .map_err(|error| usage(format!("{error:#}")))?;
    tasks.push(task);
    Ok(Some(Arc::new(follower)))
}

/// Starts the node, waits for a signal or a fault, and shuts it down.
async fn until_the_end(
    manager: &Manager,
    autostart: bool,
    end: &mut Ends,
    faults: &mut UnboundedReceiver<String>,
) -> Result<Ended> {
    let started = tokio::select! {
        started = start(manager, autostart) => started,
        () = end.wait() => {
            info!("ended while loading");
            notify::stopping();
            manager.hurry();
            return Ok(Ended::Abandoned);
        }
    };
    let fault = match started {
        Err(reason) => Some(reason),
        Ok(()) => {
            notify::ready();
            tokio::select! {
                () = end.wait() => None,
                fault = faults.recv() => fault.map(|fault| anyhow!(fault)),
            }
        }
    };
    notify::stopping();
    manager.hurry();
    // In the middle of a transition there is no way to shut down; the process ends all the same.
    let shut_down = tokio::time::timeout(END_LIMIT, manager.make(&Asked::label("shutdown"))).await;
    match fault {
        Some(fault) => Err(fault),
        None if matches!(shut_down, Ok(Ok(()))) => Ok(Ended::Clean),
        None => Ok(Ended::Abandoned),
    }
}

/// Tells the service manager that the node lives while the thread that receives messages answers.
async fn keep_alive(node: NodeHandle) {
    notify::keep_alive(|| async { node.ask(|_| ()).await.is_ok() }).await;
}

/// Configures and activates, if the node is to do so by itself.
async fn start(manager: &Manager, autostart: bool) -> Result<()> {
    if !autostart {
        info!("unconfigured; waiting for lifecycle transitions (parameter `autostart` is false)");
        return Ok(());
    }
    manager.make(&Asked::label("configure")).await?;
    manager.make(&Asked::label("activate")).await
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

/// An error of whoever wrote the arguments or the parameters.
pub fn usage(error: impl ToString) -> WrongUsage {
    WrongUsage(error.to_string())
}
