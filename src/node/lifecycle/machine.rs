//! The states of a managed node and the steps between them, as `lifecycle_msgs` numbers them.

/// A state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Unknown = 0,
    Unconfigured = 1,
    Inactive = 2,
    Active = 3,
    Finalized = 4,
    Configuring = 10,
    CleaningUp = 11,
    ShuttingDown = 12,
    Activating = 13,
    Deactivating = 14,
    ErrorProcessing = 15,
}

impl State {
    /// Every state, in the order in which rclcpp lists them.
    pub const ALL: [State; 11] = [
        State::Unknown,
        State::Unconfigured,
        State::Inactive,
        State::Active,
        State::Finalized,
        State::Configuring,
        State::CleaningUp,
        State::ShuttingDown,
        State::Activating,
        State::Deactivating,
        State::ErrorProcessing,
    ];

    pub fn label(self) -> &'static str {
        match self {
            State::Unknown => "unknown",
            State::Unconfigured => "unconfigured",
            State::Inactive => "inactive",
            State::Active => "active",
            State::Finalized => "finalized",
            State::Configuring => "configuring",
            State::CleaningUp => "cleaningup",
            State::ShuttingDown => "shuttingdown",
            State::Activating => "activating",
            State::Deactivating => "deactivating",
            State::ErrorProcessing => "errorprocessing",
        }
    }
}

/// A step from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number in `lifecycle_msgs/msg/Transition`.
    pub id: u8,
    pub label: &'static str,
    pub from: State,
    pub to: State,
}

const fn step(id: u8, label: &'static str, from: State, to: State) -> Step {
    Step { id, label, from, to }
}

const SUCCESS: &str = "transition_success";
const FAILURE: &str = "transition_failure";
const ERROR: &str = "transition_error";

/// Every step.
pub const STEPS: [Step; 25] = [
    step(1, "configure", State::Unconfigured, State::Configuring),
    step(10, SUCCESS, State::Configuring, State::Inactive),
    step(11, FAILURE, State::Configuring, State::Unconfigured),
    step(12, ERROR, State::Configuring, State::ErrorProcessing),
    step(2, "cleanup", State::Inactive, State::CleaningUp),
    step(20, SUCCESS, State::CleaningUp, State::Unconfigured),
    step(21, FAILURE, State::CleaningUp, State::Inactive),
    step(22, ERROR, State::CleaningUp, State::ErrorProcessing),
    step(3, "activate", State::Inactive, State::Activating),
    step(30, SUCCESS, State::Activating, State::Active),
    step(31, FAILURE, State::Activating, State::Inactive),
    step(32, ERROR, State::Activating, State::ErrorProcessing),
    step(4, "deactivate", State::Active, State::Deactivating),
    step(40, SUCCESS, State::Deactivating, State::Inactive),
    step(41, FAILURE, State::Deactivating, State::Active),
    step(42, ERROR, State::Deactivating, State::ErrorProcessing),
    step(5, "shutdown", State::Unconfigured, State::ShuttingDown),
    step(6, "shutdown", State::Inactive, State::ShuttingDown),
    step(7, "shutdown", State::Active, State::ShuttingDown),
    step(50, SUCCESS, State::ShuttingDown, State::Finalized),
    step(51, FAILURE, State::ShuttingDown, State::Finalized),
    step(52, ERROR, State::ShuttingDown, State::ErrorProcessing),
    step(60, SUCCESS, State::ErrorProcessing, State::Unconfigured),
    step(61, FAILURE, State::ErrorProcessing, State::Finalized),
    step(62, ERROR, State::ErrorProcessing, State::Finalized),
];

/// How the work of a transition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    /// It could not be done, and everything is as before.
    Failure,
}

/// What a client asks for: `id`, or `label` where that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub id: u8,
    pub label: String,
}

impl Asked {
    pub fn label(label: &str) -> Self {
        Self { id: 0, label: label.to_owned() }
    }
}

/// The state a node is in.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    state: State,
}

/// A transition that cannot be made now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node is {}, where it takes {takes}; asked for was {asked}", state.label())]
pub struct NotNow {
    pub state: State,
    takes: String,
    asked: String,
}

impl Default for Machine {
    fn default() -> Self {
        Self { state: State::Unconfigured }
    }
}

impl Machine {
    pub fn state(self) -> State {
        self.state
    }

    /// The steps that can be taken from here.
    pub fn steps(self) -> impl Iterator<Item = Step> {
        STEPS.into_iter().filter(move |step| step.from == self.state)
    }

    /// Begins a transition; the state is a passing one until [`Machine::end`].
    ///
    /// # Errors
    /// It cannot be made from here; the state stays.
    pub fn begin(&mut self, asked: &Asked) -> Result<Step, NotNow> {
        let wanted = |step: &Step| {
            if asked.label.is_empty() { asked.id == step.id } else { asked.label == step.label }
        };
        // The steps that end a transition are not for clients.
        let open = || self.steps().filter(|step| !is_end(step));
        let Some(step) = open().find(wanted) else {
            let takes: Vec<&str> = open().map(|step| step.label).collect();
            let takes = if takes.is_empty() { "nothing".to_owned() } else { takes.join(", ") };
            let asked = if asked.label.is_empty() {
                format!("number {}", asked.id)
            } else {
                format!("'{}'", asked.label)
            };
            return Err(NotNow { state: self.state, takes, asked });
        };
        self.state = step.to;
        Ok(step)
    }

    /// Ends the transition that has begun; `None` if none has.
    pub fn end(&mut self, outcome: Outcome) -> Option<Step> {
        let label = match outcome {
            Outcome::Success => SUCCESS,
            Outcome::Failure => FAILURE,
        };
        let step = self.steps().find(|step| step.label == label)?;
        self.state = step.to;
        Some(step)
    }
}

fn is_end(step: &Step) -> bool {
    [SUCCESS, FAILURE, ERROR].contains(&step.label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_id(id: u8) -> Asked {
        Asked { id, label: String::new() }
    }

    #[test]
    fn the_walk_of_a_managed_node() {
        let mut machine = Machine::default();
        for (asked, passing, outcome, after) in [
            (by_id(1), State::Configuring, Outcome::Failure, State::Unconfigured),
            (by_id(1), State::Configuring, Outcome::Success, State::Inactive),
            (Asked::label("activate"), State::Activating, Outcome::Success, State::Active),
            (Asked::label("deactivate"), State::Deactivating, Outcome::Success, State::Inactive),
            (by_id(2), State::CleaningUp, Outcome::Success, State::Unconfigured),
            (Asked::label("shutdown"), State::ShuttingDown, Outcome::Success, State::Finalized),
        ] {
            let step = machine.begin(&asked).expect("possible");
            assert_eq!((step.to, machine.state()), (passing, passing));
            let step = machine.end(outcome).expect("begun");
            assert_eq!((step.from, step.to, machine.state()), (passing, after, after));
        }
        assert_eq!(machine.end(Outcome::Success), None);
    }

    #[test]
    fn what_is_not_possible_changes_nothing() {
        let mut machine = Machine::default();
        for asked in
            [by_id(3), by_id(7), by_id(10), by_id(99), Asked::label("fly"), Asked::label(SUCCESS)]
        {
            let refused = machine.begin(&asked).expect_err("not possible").to_string();
            assert!(
                refused.contains("unconfigured, where it takes configure, shutdown"),
                "{refused}"
            );
            assert_eq!(machine.state(), State::Unconfigured);
        }
        machine.begin(&by_id(1)).expect("possible");
        // While it configures, nothing else begins, and a client cannot end it.
        for asked in [by_id(1), by_id(5), by_id(10), Asked::label(SUCCESS)] {
            let refused = machine.begin(&asked).expect_err("not possible").to_string();
            assert!(refused.contains("takes nothing"), "{refused}");
        }
        assert_eq!(machine.state(), State::Configuring);
    }

    #[test]
    fn shutdown_has_a_number_for_every_state() {
        for (walk, id) in [(vec![], 5), (vec![1], 6), (vec![1, 3], 7)] {
            let mut machine = Machine::default();
            for step in walk {
                machine.begin(&by_id(step)).expect("possible");
                machine.end(Outcome::Success).expect("begun");
            }
            for other in [5, 6, 7].into_iter().filter(|other| *other != id) {
                assert!(machine.begin(&by_id(other)).is_err());
            }
            assert_eq!(machine.begin(&Asked::label("shutdown")).map(|step| step.id), Ok(id));
        }
    }

    #[test]
    fn numbers_and_ends_are_unambiguous() {
        for (i, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..i].iter().all(|other| other.id != step.id), "{}", step.id);
            assert!(
                STEPS[..i].iter().all(|other| (other.from, other.label) != (step.from, step.label))
            );
        }
    }
}
