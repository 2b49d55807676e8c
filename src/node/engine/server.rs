//! The topics and services of the action server, around the [`GoalBook`].

use std::time::Instant;

use futures::{FutureExt, StreamExt};
use r2r::action_msgs::msg::{GoalInfo, GoalStatus, GoalStatusArray};
use r2r::action_msgs::srv::CancelGoal;
use r2r::gr00t_blackhole::action::PredictChunk;
use r2r::{Node, Publisher, QosProfile, ServiceRequest, WrappedActionTypeSupport as Action};
use tokio::sync::mpsc::UnboundedSender;
use tracing::warn;

use super::super::action::goals::{
    CancelCode, CancelRequest, End, GoalBook, GoalId, Known, ResultAnswer, Status,
};
use super::super::param_services::Task;
use super::super::requests::service;
use super::super::runtime::{from_message, time_message, uuid_message};
use super::super::spin::NodeHandle;
use super::Event;

/// Name of the action.
const ACTION: &str = "~/predict_chunk";

type Served = PredictChunk::Action;
pub type SendGoal = ServiceRequest<<Served as Action>::SendGoal>;
pub type Cancel = ServiceRequest<CancelGoal::Service>;
pub type GetResult = ServiceRequest<<Served as Action>::GetResult>;
type FeedbackMessage = <Served as Action>::FeedbackMessage;

/// Goals, those who wait for their results, and the topics that tell of them.
pub struct ActionServer {
    book: GoalBook<PredictChunk::Result, GetResult>,
    status: Publisher<GoalStatusArray>,
    feedback: Publisher<FeedbackMessage>,
}

/// A goal as it came.
pub struct Arrived {
    pub id: GoalId,
    pub goal: PredictChunk::Goal,
}

impl ActionServer {
    /// Creates topics and services; the tasks hand every request to `events`.
    ///
    /// # Errors
    /// What rcl reports.
    pub fn new(
        node: &mut Node,
        spinner: &NodeHandle,
        events: &UnboundedSender<Event>,
    ) -> r2r::Result<(Self, Vec<Task>)> {
        let name = |part: &str| format!("{ACTION}/_action/{part}");
        let goals = service::<<Served as Action>::SendGoal>(node, spinner, &name("send_goal"))?;
        let cancels = service::<CancelGoal::Service>(node, spinner, &name("cancel_goal"))?;
        let results = service::<<Served as Action>::GetResult>(node, spinner, &name("get_result"))?;
        let latched = QosProfile::default().reliable().transient_local().keep_last(1);
        let server = Self {
            book: GoalBook::default(),
            status: node.create_publisher(&name("status"), latched)?,
            feedback: node.create_publisher(&name("feedback"), QosProfile::default())?,
        };
        let [to_goals, to_cancels, to_results] = [0; 3].map(|_| events.clone());
        // An engine that is gone answers nobody.
        let tasks: Vec<Task> = vec![
            goals.for_each(move |r| drop_sent(&to_goals, Event::SendGoal(r))).boxed(),
            cancels.for_each(move |r| drop_sent(&to_cancels, Event::Cancel(r))).boxed(),
            results.for_each(move |r| drop_sent(&to_results, Event::GetResult(r))).boxed(),
        ];
        Ok((server, tasks))
    }

    /// The id and the goal of a request; `None` for an id that is not sixteen bytes, all zero, or known already.
    pub fn arrived(&self, request: &SendGoal) -> Option<Arrived> {
        let (uuid, goal) = Served::destructure_goal_request_msg(request.message.clone());
        let id = GoalId::try_from(uuid.uuid.as_slice()).ok()?;
        (id != GoalId::default() && !self.book.knows(&id)).then_some(Arrived { id, goal })
    }

    pub fn reject(request: SendGoal, now_ns: i64) {
        answer(request, Served::make_goal_response_msg(false, time_message(now_ns)));
    }

    /// Enters the goal and tells its client. The answer goes out before anything else is said of the goal.
    pub fn accept(&mut self, request: SendGoal, id: GoalId, now_ns: i64) {
        self.book.accept(id, now_ns);
        answer(request, Served::make_goal_response_msg(true, time_message(now_ns)));
        self.publish_status();
    }

    pub fn execute(&mut self, id: &GoalId) {
        self.book.execute(id);
        self.publish_status();
    }

    /// Marks goals for cancellation, answers, and names them.
    pub fn cancel(&mut self, request: Cancel) -> Vec<GoalId> {
        let info = &request.message.goal_info;
        let Ok(id) = GoalId::try_from(info.goal_id.uuid.as_slice()) else { return Vec::new() };
        let until_ns = from_message(info.stamp.sec, info.stamp.nanosec);
        let (code, goals) = self.book.cancel(&CancelRequest { id, until_ns });
        let goals_canceling = goals.iter().map(info_message).collect();
        let response = CancelGoal::Response { return_code: code as i8, goals_canceling };
        answer(request, response);
        if code == CancelCode::None && !goals.is_empty() {
            self.publish_status();
        }
        goals.iter().map(|goal| goal.id).collect()
    }

    /// Answers now, or when the goal ends.
    pub fn result(&mut self, request: GetResult) {
        let uuid = Served::destructure_result_request_msg(request.message.clone());
        let id = GoalId::try_from(uuid.uuid.as_slice()).unwrap_or_default();
        if let ResultAnswer::Now { waiter, status, result } = self.book.result(&id, request) {
            let result = result.cloned().unwrap_or_default();
            answer(waiter, Served::make_result_response_msg(status as i8, result));
        }
    }

    /// Ends a goal and answers who waits for its result.
    pub fn end(&mut self, id: &GoalId, end: End, result: PredictChunk::Result) {
        let waiting = self.book.end(id, end, result.clone(), Instant::now());
        for request in waiting {
            let status = Status::from(end) as i8;
            answer(request, Served::make_result_response_msg(status, result.clone()));
        }
        self.publish_status();
    }

    pub fn feedback(&self, id: &GoalId, feedback: PredictChunk::Feedback) {
        let message = Served::make_feedback_msg(uuid_message(id), feedback);
        if let Err(error) = self.feedback.publish(&message) {
            warn!("feedback could not be published: {error}");
        }
    }

    /// Forgets goals that ended long ago.
    pub fn expire(&mut self) {
        if self.book.expire(Instant::now()) {
            self.publish_status();
        }
    }

    pub fn publish_status(&self) {
        let known = self.book.known();
        let status =
            |goal: &Known| GoalStatus { goal_info: info_message(goal), status: goal.status as i8 };
        let message = GoalStatusArray { status_list: known.iter().map(status).collect() };
        if let Err(error) = self.status.publish(&message) {
            warn!("the status of the goals could not be published: {error}");
        }
    }
}

fn info_message(goal: &Known) -> GoalInfo {
    GoalInfo { goal_id: uuid_message(&goal.id), stamp: time_message(goal.accepted_ns) }
}

/// A caller that is gone already is no concern of the node.
fn answer<S: r2r::WrappedServiceTypeSupport + 'static>(
    request: ServiceRequest<S>,
    response: S::Response,
) {
    if let Err(error) = request.respond(response) {
        warn!("an answer of the action server could not be sent: {error}");
    }
}

fn drop_sent(events: &UnboundedSender<Event>, event: Event) -> std::future::Ready<()> {
    let _ = events.send(event);
    std::future::ready(())
}
