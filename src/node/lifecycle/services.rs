//! The services of a managed node.

use std::sync::Arc;

use futures::StreamExt;
use r2r::lifecycle_msgs::msg::{
    State as StateMessage, Transition, TransitionDescription, TransitionEvent,
};
use r2r::lifecycle_msgs::srv::{
    ChangeState, GetAvailableStates, GetAvailableTransitions, GetState,
};
use r2r::{Node, Publisher, QosProfile};
use tracing::{error, warn};

use super::super::param_services::{Task, answer};
use super::super::requests::{Requests, service};
use super::super::spin::NodeHandle;
use super::machine::{Asked, STEPS, State, Step};
use super::manager::Manager;

/// The services that answer at once, before there is a [`Manager`], and the one that changes the state.
pub struct Services {
    change: Requests<ChangeState::Service>,
    state: Requests<GetState::Service>,
    states: Requests<GetAvailableStates::Service>,
    transitions: Requests<GetAvailableTransitions::Service>,
    graph: Requests<GetAvailableTransitions::Service>,
}

impl Services {
    /// Creates the services and the topic of transition events.
    ///
    /// # Errors
    /// What rcl reports.
    pub fn new(
        node: &mut Node,
        spinner: &NodeHandle,
    ) -> r2r::Result<(Self, Publisher<TransitionEvent>)> {
        let services = Self {
            change: service(node, spinner, "~/change_state")?,
            state: service(node, spinner, "~/get_state")?,
            states: service(node, spinner, "~/get_available_states")?,
            transitions: service(node, spinner, "~/get_available_transitions")?,
            graph: service(node, spinner, "~/get_transition_graph")?,
        };
        Ok((services, node.create_publisher("~/transition_event", QosProfile::default())?))
    }

    /// The tasks that answer.
    pub fn serve(self, manager: &Arc<Manager>) -> Vec<Task> {
        let Self { change, state, states, transitions, graph } = self;
        let of_state = manager.clone();
        let of_transitions = manager.clone();
        vec![
            Box::pin(change_states(change, manager.clone())),
            Box::pin(answer(state, move |_: &GetState::Request| GetState::Response {
                current_state: state_message(of_state.machine().state()),
            })),
            Box::pin(answer(states, |_: &GetAvailableStates::Request| {
                let available_states = State::ALL.into_iter().map(state_message).collect();
                GetAvailableStates::Response { available_states }
            })),
            Box::pin(answer(transitions, move |_: &GetAvailableTransitions::Request| {
                descriptions(of_transitions.machine().steps())
            })),
            Box::pin(answer(graph, |_: &GetAvailableTransitions::Request| {
                descriptions(STEPS.into_iter())
            })),
        ]
    }
}

/// Changes the state, one request after the other.
async fn change_states(mut requests: Requests<ChangeState::Service>, manager: Arc<Manager>) {
    while let Some(request) = requests.next().await {
        let Transition { id, label } = request.message.transition.clone();
        let made = manager.make(&Asked { id, label }).await;
        if let Err(reason) = &made {
            error!("no transition: {reason:#}");
        }
        let response = ChangeState::Response { success: made.is_ok() };
        if let Err(error) = request.respond(response) {
            warn!("a service answer could not be sent: {error}");
        }
    }
}

fn descriptions(steps: impl Iterator<Item = Step>) -> GetAvailableTransitions::Response {
    let description = |step: Step| TransitionDescription {
        transition: transition_message(&step),
        start_state: state_message(step.from),
        goal_state: state_message(step.to),
    };
    GetAvailableTransitions::Response { available_transitions: steps.map(description).collect() }
}

pub fn state_message(state: State) -> StateMessage {
    StateMessage { id: state as u8, label: state.label().to_owned() }
}

pub fn transition_message(step: &Step) -> Transition {
    Transition { id: step.id, label: step.label.to_owned() }
}
