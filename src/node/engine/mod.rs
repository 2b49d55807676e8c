//! The one task that decides when to predict, for whom, and what becomes of the chunk.
//!
//! Whatever happens (a message of a client, the end of a prediction, a step of the lifecycle) is an [`Event`]; one task
//! takes them one by one. So a chunk cannot overtake the stop that was to follow it, and two goals never run at once.

mod ending;
mod goals;
mod predictions;
mod running;
mod server;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tracing::{info, warn};

use self::ending::Reason;
use self::running::{Queued, Running};
use self::server::{Cancel, GetResult, SendGoal};
use super::action::goals::GoalId;
use super::core::Core;
use super::model::Model;
use super::publish::Ticket;
use super::runtime::{Throttle, WARNING_PERIOD, locked};
use super::worker::{Failure, Span};
use crate::contract::{ActionChunk, CancelToken};
use crate::history::{Moment, Reading, seconds};
use crate::policy::PolicyError;

pub use self::pace::Pace;
pub use self::server::ActionServer;

mod pace;

/// What the engine is told.
pub enum Event {
    SendGoal(SendGoal),
    Cancel(Cancel),
    GetResult(GetResult),
    /// The running prediction enters a stage.
    Stage(&'static str),
    Done(Ticket, Span, Box<Result<ActionChunk, Failure<PolicyError>>>),
    /// The parameter `instruction` has another value.
    InstructionSet,
    /// A policy is configured.
    Install(Box<Model>),
    Activate(Done),
    /// Answered when the prediction in work has ended and the arm was told to stop.
    Deactivate(Done),
    /// Gives the policy back; only while inactive.
    Remove(oneshot::Sender<Option<Box<Model>>>),
    /// As [`Event::Deactivate`], for good.
    Shutdown(Done),
}

/// Hears when something has been done.
pub type Done = oneshot::Sender<()>;

/// Longest time between two looks at the clock.
const LOOK: Duration = Duration::from_millis(20);
/// As [`LOOK`], where the clock is simulated and may run fast.
const LOOK_SIMULATED: Duration = Duration::from_millis(2);
/// As [`LOOK`], while nothing is to be done.
const LOOK_IDLE: Duration = Duration::from_millis(200);
/// A prediction that is to end gets this long to notice; then goals end without it.
const STEP_LIMIT: Duration = Duration::from_millis(1500);
/// How often ended goals are looked through.
const EXPIRY_PERIOD: Duration = Duration::from_secs(1);

/// See the module.
pub struct Engine {
    core: Arc<Core>,
    events: UnboundedReceiver<Event>,
    /// For what others are to tell the engine.
    sender: UnboundedSender<Event>,
    simulated: bool,
    server: ActionServer,
    model: Option<Box<Model>>,
    active: bool,
    /// Who hears when it is inactive, and since when they wait.
    leaving: Option<(Instant, Done)>,
    prediction: Option<Prediction>,
    goal: Option<Running>,
    /// The goal that follows when the running one has ended.
    next: Option<Queued>,
    timer: Pace,
    /// The timer waits until an instruction is set anew: a goal has ended.
    timer_waits: bool,
    /// Chunks since the activation.
    sequence: u64,
    /// A chunk was published since the arm was last told to stop.
    arm_moves: bool,
    /// What the last prediction was made from, and for whom.
    last_seen: Option<(Option<GoalId>, Vec<Reading>)>,
    expiry: Throttle,
    waiting_notes: Throttle,
    failure_notes: Throttle,
}

/// The prediction in work.
struct Prediction {
    cancel: CancelToken,
    /// Its chunk is of no use any more.
    unwanted: bool,
}

impl Engine {
    pub fn new(
        core: Arc<Core>,
        server: ActionServer,
        events: UnboundedReceiver<Event>,
        sender: UnboundedSender<Event>,
    ) -> Self {
        let simulated = locked(&core.params).bool("use_sim_time");
        Self {
            core,
            events,
            sender,
            simulated,
            server,
            model: None,
            active: false,
            leaving: None,
            prediction: None,
            goal: None,
            next: None,
            timer: Pace::new(None),
            timer_waits: false,
            sequence: 0,
            arm_moves: false,
            last_seen: None,
            expiry: Throttle::new(EXPIRY_PERIOD),
            waiting_notes: Throttle::new(WARNING_PERIOD),
            failure_notes: Throttle::new(WARNING_PERIOD),
        }
    }

    /// Works until nobody can tell it anything any more.
    pub async fn run(mut self) {
        self.server.publish_status();
        loop {
            let pause = self.pause();
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.take(event),
                    None => return,
                },
                () = tokio::time::sleep(pause) => {}
            }
            self.turn();
        }
    }

    /// How long nothing can be due.
    fn pause(&self) -> Duration {
        if !self.active && self.leaving.is_none() {
            return LOOK_IDLE;
        }
        if self.simulated {
            return LOOK_SIMULATED;
        }
        let now_ns = self.core.clock.now().ros_ns;
        let timer = (!self.timer_waits && self.timer.has_period()).then_some(&self.timer);
        let pace = self.goal.as_ref().map(|goal| &goal.pace).or(timer);
        // Where nothing is timed, the next event wakes the engine.
        let due = pace.filter(|_| self.prediction.is_none());
        let wait_ns = due.map_or(i64::MAX, |pace| pace.wait_ns(now_ns));
        LOOK.min(Duration::from_nanos(u64::try_from(wait_ns).unwrap_or(0)))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::SendGoal(request) => self.goal_arrived(request),
            Event::Cancel(request) => self.cancel(request),
            Event::GetResult(request) => self.server.result(request),
            Event::Stage(stage) => self.stage_begins(stage),
            Event::Done(ticket, span, outcome) => self.predicted(&ticket, span, *outcome),
            Event::InstructionSet => self.instruction_set(),
            Event::Install(model) => self.model = Some(model),
            Event::Activate(done) => self.activate(done),
            Event::Deactivate(done) => self.leave(Reason::Deactivated, done),
            Event::Remove(back) => {
                let model = if self.active { None } else { self.model.take() };
                // The receiver waits for it.
                let _ = back.send(model);
            }
            Event::Shutdown(done) => self.leave(Reason::Shutdown, done),
        }
    }

    /// Looks at the clock and does what is due.
    fn turn(&mut self) {
        if self.expiry.pass().is_some() {
            self.server.expire();
        }
        self.end_goal_that_is_over();
        self.end_leaving();
        if !self.active || self.leaving.is_some() {
            return;
        }
        let now = self.core.clock.now();
        self.follow_clock(now);
        self.begin_goal_time(now);
        self.watch_goal_time(now);
        if self.prediction.is_some() {
            self.count_missed(now);
            return;
        }
        self.begin_next_goal(now);
        if self.goal.is_some() {
            self.work_on_goal(now);
        } else if !self.timer_waits {
            self.work_on_timer(now);
        }
    }

    fn activate(&mut self, done: Done) {
        if let Some(model) = &self.model {
            let settings = &model.shared.settings;
            self.timer = Pace::new(settings.period_ns);
            self.sequence = 0;
            self.last_seen = None;
            self.active = true;
            let at_ns = self.core.clock.now().steady_ns;
            model.shared.monitor.engine().begin(at_ns);
            self.wait_for_instruction(false);
        }
        // Who no longer waits does not need to hear.
        let _ = done.send(());
    }

    /// Begins to be inactive.
    fn leave(&mut self, reason: Reason, done: Done) {
        if let Some(queued) = self.next.take() {
            self.end_queued(queued, reason.clone());
        }
        self.end_goal(reason);
        self.drop_prediction();
        self.leaving = Some((Instant::now(), done));
        self.end_leaving();
    }

    /// Is inactive, once the prediction in work has ended or had its time.
    fn end_leaving(&mut self) {
        let Some((since, _)) = &self.leaving else { return };
        if self.prediction.is_some() {
            if since.elapsed() < STEP_LIMIT {
                return;
            }
            warn!("the prediction in work has not ended in time; its chunk will be dropped");
        }
        self.finish_goal();
        if self.active && self.arm_moves {
            self.stop_arm();
        }
        self.active = false;
        if let Some((_, done)) = self.leaving.take() {
            let _ = done.send(());
        }
    }

    /// The clock is followed; a goal does not survive a jump.
    fn follow_clock(&mut self, now: Moment) {
        let Some(model) = &self.model else { return };
        let jump = {
            let mut sensors = locked(&model.shared.sensors);
            sensors.history.advance(now);
            sensors.history.take_clock_jump()
        };
        let Some(jump) = jump else { return };
        let by_s = seconds(jump.by_ns);
        warn!("the clock jumped by {by_s:.3} s; all readings are forgotten");
        model.shared.monitor.clock_jumped();
        self.timer = Pace::new(model.shared.settings.period_ns);
        self.drop_prediction();
        self.end_goal(Reason::ClockReset { by_s });
    }

    fn instruction_set(&mut self) {
        if self.timer_waits && self.goal.is_none() {
            info!("the timer goes on with the new instruction");
            self.wait_for_instruction(false);
        }
    }

    fn drop_prediction(&mut self) {
        if let Some(prediction) = &mut self.prediction {
            prediction.cancel.cancel();
            prediction.unwanted = true;
        }
    }

    fn stop_arm(&mut self) {
        self.arm_moves = false;
        if let Some(model) = &self.model {
            model.publishers.trajectories.stop(&model.shared);
            model.shared.monitor.engine().seams.interrupt();
        }
    }

    /// Whether the timer rests until an instruction is set anew.
    fn wait_for_instruction(&mut self, waits: bool) {
        self.timer_waits = waits;
        if let Some(model) = &self.model {
            model.shared.monitor.engine().timer_waits = waits;
        }
    }

    fn set_goal_runs(&self, runs: bool) {
        self.core.goal_runs.store(runs, Ordering::Release);
    }
}
