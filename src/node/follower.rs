//! A client of `control_msgs/action/FollowJointTrajectory`: hands every trajectory to a controller as a goal.
//!
//! A new goal takes the place of the one before, which is how joint_trajectory_controller blends from one trajectory
//! into the next. The client is made of services, since the one in r2r 0.9.7 keeps every goal that was rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use r2r::action_msgs::msg::GoalInfo;
use r2r::action_msgs::srv::CancelGoal;
use r2r::control_msgs::action::FollowJointTrajectory;
use r2r::trajectory_msgs::msg::JointTrajectory;
use r2r::{Client, Node, QosProfile, WrappedActionTypeSupport as Action};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

use super::runtime::{Throttle, WARNING_PERIOD, and_more, uuid_message};

type Followed = FollowJointTrajectory::Action;

/// A controller that does not answer in this time is taken for gone.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// What the controller is to do; the newest order counts.
#[derive(Clone)]
enum Order {
    Nothing,
    Follow(Arc<JointTrajectory>),
    Stop,
}

/// Gives orders; never waits for the controller.
pub struct Follower {
    orders: watch::Sender<Order>,
    /// An order is being carried out, or waits to be.
    busy: Arc<AtomicBool>,
}

impl Follower {
    /// A client of the action server `name`; the task works until the follower is dropped.
    ///
    /// # Errors
    /// What rcl reports, such as a name that cannot be one.
    pub fn new(node: &mut Node, name: &str) -> r2r::Result<(Self, BoxFuture<'static, ()>)> {
        let qos = QosProfile::services_default;
        let part = |part: &str| format!("{name}/_action/{part}");
        let (orders, inbox) = watch::channel(Order::Nothing);
        let busy = Arc::new(AtomicBool::new(false));
        let task = Task {
            name: name.to_owned(),
            goals: node.create_client(&part("send_goal"), qos())?,
            cancels: Arc::new(node.create_client(&part("cancel_goal"), qos())?),
            available: false,
            last: None,
            busy: busy.clone(),
            notes: Notes::default(),
        };
        Ok((Self { orders, busy }, Box::pin(task.run(inbox))))
    }

    /// The controller is to follow this from now on.
    pub fn follow(&self, trajectory: JointTrajectory) {
        self.order(Order::Follow(Arc::new(trajectory)));
    }

    /// The controller is to stop where it is.
    pub fn stop(&self) {
        self.order(Order::Stop);
    }

    fn order(&self, order: Order) {
        self.busy.store(true, Ordering::Release);
        self.orders.send_replace(order);
    }

    /// Waits until the controller has heard of every order, or for so long.
    pub async fn settle(&self, limit: Duration) {
        const LOOK: Duration = Duration::from_millis(5);
        let start = Instant::now();
        while self.busy.load(Ordering::Acquire) && start.elapsed() < limit {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn cancel_request(id: Uuid) -> CancelGoal::Request {
    let goal_info = GoalInfo { goal_id: uuid_message(id.as_bytes()), ..Default::default() };
    CancelGoal::Request { goal_info }
}

struct Task {
    name: String,
    goals: Client<<Followed as Action>::SendGoal>,
    cancels: Arc<Client<CancelGoal::Service>>,
    available: bool,
    /// The goal that the controller has accepted last.
    last: Option<Uuid>,
    busy: Arc<AtomicBool>,
    notes: Notes,
}

/// One throttle for each thing that is told, so that none keeps another quiet.
struct Notes {
    absent: Throttle,
    rejects: Throttle,
    silent: Throttle,
}

impl Default for Notes {
    fn default() -> Self {
        let [absent, rejects, silent] = [WARNING_PERIOD; 3].map(Throttle::new);
        Self { absent, rejects, silent }
    }
}

impl Task {
    async fn run(mut self, mut inbox: watch::Receiver<Order>) {
        loop {
            if !self.available {
                if !self.wait_for_controller().await {
                    return;
                }
                // What was ordered while there was no controller is old.
                inbox.mark_unchanged();
            }
            self.busy.store(false, Ordering::Release);
            if inbox.changed().await.is_err() {
                return;
            }
            let order = inbox.borrow_and_update().clone();
            match order {
                Order::Nothing => {}
                Order::Follow(trajectory) => self.send(&trajectory).await,
                Order::Stop => self.cancel().await,
            }
        }
    }

    /// `false` if the node has ended.
    async fn wait_for_controller(&mut self) -> bool {
        if self.notes.absent.pass().is_some() {
            warn!("no controller answers on {} (parameter `follow_joint_trajectory`)", self.name);
        }
        let Ok(available) = Node::is_available(&self.goals) else { return false };
        if available.await.is_err() {
            return false;
        }
        info!("trajectories go to the controller on {}", self.name);
        self.available = true;
        true
    }

    async fn send(&mut self, trajectory: &JointTrajectory) {
        let id = Uuid::new_v4();
        let goal =
            FollowJointTrajectory::Goal { trajectory: trajectory.clone(), ..Default::default() };
        let request = Followed::make_goal_request_msg(uuid_message(id.as_bytes()), goal);
        let Ok(answer) = self.goals.request(&request) else { return self.lost() };
        let mut answer = Box::pin(answer);
        match timeout(ANSWER_LIMIT, &mut answer).await {
            Ok(Ok(response)) => match Followed::destructure_goal_response_msg(response) {
                (true, _) => self.last = Some(id),
                (false, _) => self.refuse(),
            },
            Ok(Err(_)) => self.lost(),
            Err(_) => {
                self.lost();
                // Should it be accepted yet, it is old, and may come after a stop.
                let cancels = self.cancels.clone();
                tokio::spawn(async move {
                    let accepted = answer.await.map(Followed::destructure_goal_response_msg);
                    if let Ok((true, _)) = accepted
                        && let Ok(cancelled) = cancels.request(&cancel_request(id))
                    {
                        let _ = cancelled.await;
                    }
                });
            }
        }
    }

    async fn cancel(&mut self) {
        let Some(id) = self.last.take() else { return };
        let Ok(answer) = self.cancels.request(&cancel_request(id)) else { return self.lost() };
        if timeout(ANSWER_LIMIT, answer).await.is_err() {
            self.lost();
        }
    }

    fn refuse(&mut self) {
        if let Some(held_back) = self.notes.rejects.pass() {
            warn!(
                "the controller on {} rejects trajectories; do its joints have the names of ~/joint_trajectory?{}",
                self.name,
                and_more(held_back)
            );
        }
    }

    /// What was asked is not known to have arrived.
    fn lost(&mut self) {
        self.available = false;
        if let Some(held_back) = self.notes.silent.pass() {
            warn!("the controller on {} does not answer{}", self.name, and_more(held_back));
        }
    }
}
