//! What each transition does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use r2r::Publisher;
use r2r::lifecycle_msgs::msg::TransitionEvent;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::super::core::Core;
use super::super::engine::Event;
use super::super::follower::Follower;
use super::super::model::Model;
use super::super::runtime::locked;
use super::super::sensors::Sensors;
use super::super::spin::NodeHandle;
use super::super::subscriptions::Subscriptions;
use super::machine::{Asked, Machine, Outcome, State, Step};
use super::services::{state_message, transition_message};
use crate::contract::CancelToken;

/// A controller gets this long to hear of the stop when the node is shut down.
const STOP_HEARD_LIMIT: Duration = Duration::from_millis(800);

/// Takes the node through its life, one transition at a time.
pub struct Manager {
    core: Arc<Core>,
    node: NodeHandle,
    events: UnboundedSender<Event>,
    /// Hears what the process cannot live with.
    fault: UnboundedSender<String>,
    machine: Mutex<Machine>,
    /// Held while a transition is made.
    active: tokio::sync::Mutex<Option<Subscriptions>>,
    transitions: Mutex<Publisher<TransitionEvent>>,
    controller: Option<Arc<Follower>>,
    /// Ends a warm-up when the process is to end.
    cancel: CancelToken,
}

impl Manager {
    pub fn new(
        core: Arc<Core>,
        node: NodeHandle,
        events: UnboundedSender<Event>,
        fault: UnboundedSender<String>,
        transitions: Publisher<TransitionEvent>,
        controller: Option<Arc<Follower>>,
    ) -> Self {
        Self {
            core,
            node,
            events,
            fault,
            machine: Mutex::new(Machine::default()),
            active: tokio::sync::Mutex::new(None),
            transitions: Mutex::new(transitions),
            controller,
            cancel: CancelToken::default(),
        }
    }

    pub fn machine(&self) -> Machine {
        *locked(&self.machine)
    }

    /// Makes a transition.
    ///
    /// # Errors
    /// It cannot be made from this state, or its work has failed; then the node is in the state that it was in.
    pub async fn make(&self, asked: &Asked) -> Result<()> {
        let step = {
            let mut machine = locked(&self.machine);
            machine.begin(asked)?
        };
        self.announce(step);
        let done = self.work(step).await;
        let outcome = if done.is_ok() { Outcome::Success } else { Outcome::Failure };
        let ended = locked(&self.machine).end(outcome);
        if let Some(ended) = ended {
            self.announce(ended);
        }
        done
    }

    async fn work(&self, step: Step) -> Result<()> {
        let mut active = self.active.lock().await;
        match step.to {
            State::Configuring => self.configure().await,
            State::Activating => {
                *active = Some(self.activate().await?);
                Ok(())
            }
            State::Deactivating => {
                *active = None;
                self.tell(Event::Deactivate).await
            }
            State::CleaningUp => self.clean_up().await,
            State::ShuttingDown => {
                *active = None;
                self.tell(Event::Shutdown).await?;
                if let Some(controller) = &self.controller {
                    controller.settle(STOP_HEARD_LIMIT).await;
                }
                self.clean_up().await
            }
            // The other states are not begun by a transition.
            _ => Ok(()),
        }
    }

    async fn configure(&self) -> Result<()> {
        let (core, node, events) = (&self.core, &self.node, &self.events);
        let (controller, cancel) = (self.controller.clone(), self.cancel.clone());
        let loaded = Model::load(core, node, events, &self.fault, controller, cancel).await;
        let model = loaded.inspect_err(|_| core.set_device(None))?;
        self.core.set_configured(Some(model.shared.clone()));
        self.send(Event::Install(Box::new(model)))
    }

    async fn activate(&self) -> Result<Subscriptions> {
        let shared = self.core.configured().ok_or_else(|| anyhow!("no policy is configured"))?;
        // What was seen before the node was inactive is old by now.
        *locked(&shared.sensors) = Sensors::new(&shared.settings);
        shared.monitor.begin();
        let subscriptions = Subscriptions::new(&self.node, &shared).await?;
        self.tell(Event::Activate).await?;
        info!(
            "{} for '{}' on {}, ready as {}",
            shared.version, shared.embodiment.tag, shared.backend, self.core.node_name
        );
        Ok(subscriptions)
    }

    async fn clean_up(&self) -> Result<()> {
        self.core.set_configured(None);
        self.core.set_device(None);
        let (back, model) = oneshot::channel();
        self.send(Event::Remove(back))?;
        if let Some(model) = model.await? {
            info!("the policy is unloaded; {}", model.shared.counters);
            if !model.end(&self.node).await {
                warn!("the prediction in work did not end in time and is abandoned");
            }
        }
        Ok(())
    }

    /// Ends a warm-up that is running; for the end of the process.
    pub fn hurry(&self) {
        self.cancel.cancel();
    }

    fn send(&self, event: Event) -> Result<()> {
        self.events.send(event).map_err(|_| anyhow!("the engine has ended"))
    }

    /// Tells the engine something and waits until it is done.
    async fn tell(&self, event: impl FnOnce(oneshot::Sender<()>) -> Event) -> Result<()> {
        let (done, heard) = oneshot::channel();
        self.send(event(done))?;
        Ok(heard.await?)
    }

    fn announce(&self, step: Step) {
        info!("lifecycle: {} -> {}", step.from.label(), step.to.label());
        let event = TransitionEvent {
            timestamp: u64::try_from(self.core.clock.now().ros_ns).unwrap_or(0),
            transition: transition_message(&step),
            start_state: state_message(step.from),
            goal_state: state_message(step.to),
        };
        if let Err(error) = locked(&self.transitions).publish(&event) {
            warn!("a transition event could not be published: {error}");
        }
    }
}
