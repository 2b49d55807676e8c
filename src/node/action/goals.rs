//! The goals of an action server and what a client may ask about them: the contract of ROS 2 actions, without ROS.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Sixteen random bytes that a client makes up.
pub type GoalId = [u8; 16];

/// How long the result of a goal that has ended can be asked for; rcl's default.
pub const RESULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Ended goals that are remembered at most, so that many short goals do not fill the memory.
const MAX_ENDED: usize = 64;
/// Result requests that may wait for one goal.
const MAX_WAITING: usize = 64;

/// Where a goal is; the numbers are those of `action_msgs/msg/GoalStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Unknown = 0,
    Accepted = 1,
    Executing = 2,
    Canceling = 3,
    Succeeded = 4,
    Canceled = 5,
    Aborted = 6,
}

impl Status {
    pub fn has_ended(self) -> bool {
        matches!(self, Status::Succeeded | Status::Canceled | Status::Aborted)
    }
}

/// How a goal can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Succeeded,
    Canceled,
    Aborted,
}

impl From<End> for Status {
    fn from(end: End) -> Self {
        match end {
            End::Succeeded => Status::Succeeded,
            End::Canceled => Status::Canceled,
            End::Aborted => Status::Aborted,
        }
    }
}

/// The answer of a cancel request; the numbers are those of `action_msgs/srv/CancelGoal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelCode {
    None = 0,
    UnknownGoal = 2,
    Terminated = 3,
}

/// What a client asks to cancel: all zero for every goal; an id for that goal; a time for every goal accepted until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    pub id: GoalId,
    pub until_ns: i64,
}

/// A goal, its status, and when it was accepted (node clock, ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub id: GoalId,
    pub status: Status,
    pub accepted_ns: i64,
}

/// What is to be answered to a result request now.
#[derive(Debug, PartialEq, Eq)]
pub enum ResultAnswer<'a, R, W> {
    /// There is a result, or there never will be one: the goal is not known.
    Now { waiter: W, status: Status, result: Option<&'a R> },
    /// The waiter is kept until the goal ends.
    Later,
}

struct Entry<R, W> {
    status: Status,
    accepted_ns: i64,
    ended: Option<(Instant, R)>,
    waiting: Vec<W>,
}

/// Every goal that is running, and those that have ended lately. `R` is a result, `W` someone who waits for it.
pub struct GoalBook<R, W> {
    goals: BTreeMap<GoalId, Entry<R, W>>,
}

impl<R, W> Default for GoalBook<R, W> {
    fn default() -> Self {
        Self { goals: BTreeMap::new() }
    }
}

impl<R, W> GoalBook<R, W> {
    /// Whether an id is in use, running or remembered.
    pub fn knows(&self, id: &GoalId) -> bool {
        self.goals.contains_key(id)
    }

    /// Enters a new goal; `false` if its id is known already.
    pub fn accept(&mut self, id: GoalId, accepted_ns: i64) -> bool {
        if self.knows(&id) {
            return false;
        }
        let status = Status::Accepted;
        self.goals.insert(id, Entry { status, accepted_ns, ended: None, waiting: Vec::new() });
        true
    }

    /// An accepted goal is worked on from now.
    pub fn execute(&mut self, id: &GoalId) {
        if let Some(entry) = self.goals.get_mut(id).filter(|e| e.status == Status::Accepted) {
            entry.status = Status::Executing;
        }
    }

    /// Marks goals for cancellation and names them; one that is being cancelled already is named again.
    pub fn cancel(&mut self, request: &CancelRequest) -> (CancelCode, Vec<Known>) {
        let one = request.id != GoalId::default();
        let until = request.until_ns != 0;
        if one && !until {
            match self.goals.get(&request.id) {
                None => return (CancelCode::UnknownGoal, Vec::new()),
                Some(entry) if entry.status.has_ended() => {
                    return (CancelCode::Terminated, Vec::new());
                }
                Some(_) => {}
            }
        }
        let mut cancelled = Vec::new();
        for (id, entry) in &mut self.goals {
            let all = !one && !until;
            let early = until && entry.accepted_ns <= request.until_ns;
            let wanted = all || early || (one && *id == request.id);
            if wanted && !entry.status.has_ended() {
                entry.status = Status::Canceling;
                cancelled.push(known(id, entry));
            }
        }
        (CancelCode::None, cancelled)
    }

    /// Ends a goal and gives back who waits for its result.
    pub fn end(&mut self, id: &GoalId, end: End, result: R, now: Instant) -> Vec<W> {
        let Some(entry) = self.goals.get_mut(id) else { return Vec::new() };
        entry.status = end.into();
        entry.ended = Some((now, result));
        std::mem::take(&mut entry.waiting)
    }

    /// Someone asks for a result.
    pub fn result(&mut self, id: &GoalId, waiter: W) -> ResultAnswer<'_, R, W> {
        match self.goals.get_mut(id) {
            None => ResultAnswer::Now { waiter, status: Status::Unknown, result: None },
            Some(Entry { status, ended: Some((_, result)), .. }) => {
                ResultAnswer::Now { waiter, status: *status, result: Some(result) }
            }
            Some(entry) if entry.waiting.len() == MAX_WAITING => {
                ResultAnswer::Now { waiter, status: entry.status, result: None }
            }
            Some(entry) => {
                entry.waiting.push(waiter);
                ResultAnswer::Later
            }
        }
    }

    /// Forgets goals that ended long ago, or too many ended goals; whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.goals.len();
        let mut ended: Vec<(Instant, GoalId)> = Vec::new();
        for (id, entry) in &self.goals {
            ended.extend(entry.ended.as_ref().map(|(at, _)| (*at, *id)));
        }
        ended.sort();
        let surplus = ended.len().saturating_sub(MAX_ENDED);
        for (place, (at, id)) in ended.iter().enumerate() {
            if place < surplus || now.duration_since(*at) >= RESULT_TIMEOUT {
                self.goals.remove(id);
            }
        }
        self.goals.len() != before
    }

    /// Every goal, in the order of acceptance.
    pub fn known(&self) -> Vec<Known> {
        let mut all: Vec<Known> = self.goals.iter().map(|(id, entry)| known(id, entry)).collect();
        all.sort_by_key(|goal| goal.accepted_ns);
        all
    }
}

fn known<R, W>(id: &GoalId, entry: &Entry<R, W>) -> Known {
    Known { id: *id, status: entry.status, accepted_ns: entry.accepted_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Book = GoalBook<&'static str, u32>;

    fn id(number: u8) -> GoalId {
        [number; 16]
    }

    fn book(goals: u8) -> Book {
        let mut book = Book::default();
        for number in 1..=goals {
            assert!(book.accept(id(number), i64::from(number) * 10));
            book.execute(&id(number));
        }
        book
    }

    fn statuses(book: &Book) -> Vec<Status> {
        book.known().iter().map(|goal| goal.status).collect()
    }

    fn cancel(book: &mut Book, id: GoalId, until_ns: i64) -> (CancelCode, Vec<u8>) {
        let (code, goals) = book.cancel(&CancelRequest { id, until_ns });
        (code, goals.iter().map(|goal| goal.id[0]).collect())
    }

    #[test]
    fn an_id_is_taken_once() {
        let mut book = book(1);
        assert!(!book.accept(id(1), 99));
        book.end(&id(1), End::Succeeded, "done", Instant::now());
        assert!(!book.accept(id(1), 99), "while its result can still be asked for");
        assert_eq!(statuses(&book), [Status::Succeeded]);
    }

    #[test]
    fn results_wait_for_the_end() {
        let mut book = book(1);
        assert_eq!(book.result(&id(1), 7), ResultAnswer::Later);
        assert_eq!(book.result(&id(1), 8), ResultAnswer::Later);
        assert_eq!(book.end(&id(1), End::Aborted, "late", Instant::now()), [7, 8]);
        let again = ResultAnswer::Now { waiter: 9, status: Status::Aborted, result: Some(&"late") };
        assert_eq!(book.result(&id(1), 9), again);
        let unknown = ResultAnswer::Now { waiter: 9, status: Status::Unknown, result: None };
        assert_eq!(book.result(&id(2), 9), unknown);
    }

    #[test]
    fn too_many_that_wait_are_told_the_status() {
        let mut book = book(1);
        for waiter in 0..MAX_WAITING as u32 {
            assert_eq!(book.result(&id(1), waiter), ResultAnswer::Later);
        }
        let full = ResultAnswer::Now { waiter: 99, status: Status::Executing, result: None };
        assert_eq!(book.result(&id(1), 99), full);
    }

    #[test]
    fn cancel_takes_one_some_or_all() {
        let none = GoalId::default();
        assert_eq!(cancel(&mut book(3), id(2), 0), (CancelCode::None, vec![2]));
        assert_eq!(cancel(&mut book(3), none, 0), (CancelCode::None, vec![1, 2, 3]));
        assert_eq!(cancel(&mut book(3), none, 20), (CancelCode::None, vec![1, 2]));
        assert_eq!(cancel(&mut book(3), id(3), 10), (CancelCode::None, vec![1, 3]));
        assert_eq!(cancel(&mut book(0), none, 0), (CancelCode::None, vec![]));

        let mut book = book(2);
        assert_eq!(cancel(&mut book, id(9), 0), (CancelCode::UnknownGoal, vec![]));
        book.end(&id(1), End::Succeeded, "done", Instant::now());
        assert_eq!(cancel(&mut book, id(1), 0), (CancelCode::Terminated, vec![]));
        assert_eq!(cancel(&mut book, none, 0), (CancelCode::None, vec![2]));
        assert_eq!(cancel(&mut book, id(2), 0), (CancelCode::None, vec![2]), "again");
        assert_eq!(statuses(&book), [Status::Succeeded, Status::Canceling]);
        book.execute(&id(2));
        assert_eq!(statuses(&book)[1], Status::Canceling, "no way back");
    }

    #[test]
    fn ended_goals_are_forgotten_in_time() {
        let mut book = book(2);
        let start = Instant::now();
        book.end(&id(1), End::Succeeded, "done", start);
        assert!(!book.expire(start + RESULT_TIMEOUT / 2));
        assert!(book.expire(start + RESULT_TIMEOUT));
        assert!(!book.knows(&id(1)) && book.knows(&id(2)));
    }

    #[test]
    fn case_65_many_short_goals_take_no_more_memory() {
        let mut book = Book::default();
        let start = Instant::now();
        for number in 1..=100_000u128 {
            let id = number.to_le_bytes();
            assert!(book.accept(id, number as i64));
            let now = start + Duration::from_micros(number as u64);
            book.end(&id, End::Succeeded, "done", now);
            book.expire(now);
            assert!(book.known().len() <= MAX_ENDED);
        }
        assert!(book.knows(&100_000u128.to_le_bytes()), "the latest can be asked for");
    }
}
