//! When each message of a bag is due, and which stamp it then carries.

use std::borrow::Cow;
use std::time::Duration;

use super::message::{
    MessageError, RosMessage, TfMessage, Time, deserialize, read_stamp, serialize, write_stamp,
};
use crate::bag::{Bag, BagMessage};

/// Between the last message and the first of the next round, for a bag of a single message.
const PAUSE_OF_ONE: Duration = Duration::from_millis(100);

/// One pass over a bag, at a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Playback {
    /// Time of reception of the bag's first message, nanoseconds.
    recorded_start_ns: u64,
    /// When that message is sent now, nanoseconds since the epoch.
    start_ns: i64,
    /// Recorded seconds per second.
    rate: f64,
}

impl Playback {
    /// A pass over `bag` whose first message is sent at `start_ns`; `rate` is recorded seconds per second.
    pub fn new(bag: &Bag, start_ns: i64, rate: f64) -> Self {
        let recorded_start_ns = bag.messages.first().map_or(0, |message| message.log_time_ns);
        Self { recorded_start_ns, start_ns, rate }
    }

    /// Time from the start of the pass until `message` is due.
    pub fn due(&self, message: &BagMessage) -> Duration {
        let recorded = message.log_time_ns.saturating_sub(self.recorded_start_ns);
        Duration::from_nanos((recorded as f64 / self.rate) as u64)
    }

    /// Length of the pass with a pause before the next one that is as long as the messages are apart on average.
    pub fn period(&self, bag: &Bag) -> Duration {
        let length = bag.duration().div_f64(self.rate);
        match bag.messages.len().checked_sub(1) {
            Some(gaps @ 1..) => length + length.div_f64(gaps as f64),
            _ => PAUSE_OF_ONE,
        }
    }

    /// The bytes to send: the stamp of a message that begins with a header, and of every transform, lies as far from now
    /// as it lay from the recording's own time (divided by the rate); a stamp of zero, which means none, stays. Nothing
    /// else changes.
    ///
    /// # Errors
    /// A message too short for what it should be, or a stamp beyond 2038.
    pub fn restamped<'a>(
        &self,
        bag: &Bag,
        message: &'a BagMessage,
    ) -> Result<Cow<'a, [u8]>, MessageError> {
        let topic = &bag.topics[message.topic];
        if topic.message_type == TfMessage::TYPE {
            let mut moved: TfMessage = deserialize(&message.data)?;
            for transform in &mut moved.transforms {
                transform.header.stamp = self.moved(transform.header.stamp)?;
            }
            return Ok(Cow::Owned(serialize(&moved)?));
        }
        if !topic.stamped {
            return Ok(Cow::Borrowed(&message.data));
        }
        let stamp = self.moved(read_stamp(&message.data)?)?;
        let mut data = message.data.clone();
        write_stamp(&mut data, stamp)?;
        Ok(Cow::Owned(data))
    }

    /// A recorded stamp in the time of this pass.
    fn moved(&self, recorded: Time) -> Result<Time, MessageError> {
        if recorded.nanoseconds() == 0 {
            return Ok(recorded);
        }
        let since_start = recorded.nanoseconds() as f64 - self.recorded_start_ns as f64;
        Time::from_nanoseconds(self.start_ns.saturating_add((since_start / self.rate) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Header, JointState, Quaternion, TransformStamped, Vector3};
    use super::*;
    use crate::bag::{CDR, Topic};

    const RECORDED_NS: u64 = 1_000_000_000_000;
    const NOW_NS: i64 = 1_800_000_000_000_000_000;

    fn topic(name: &str, message_type: &str, stamped: bool) -> Topic {
        let (name, message_type) = (name.into(), message_type.into());
        Topic { name, message_type, encoding: CDR.into(), stamped, messages: None }
    }

    fn bag(stamped: bool) -> Bag {
        let topic = topic("/joint_states", JointState::TYPE, stamped);
        let message = |milliseconds: u64| {
            let log_time_ns = RECORDED_NS + milliseconds * 1_000_000;
            // Stamped 4 ms before it was received.
            let stamp = Time::from_nanoseconds(log_time_ns as i64 - 4_000_000).unwrap();
            let header = Header { stamp, frame_id: "base".into() };
            let (name, position) = (vec!["knee".into()], vec![0.5]);
            let state = JointState { header, name, position, velocity: vec![], effort: vec![] };
            BagMessage { topic: 0, log_time_ns, data: serialize(&state).unwrap() }
        };
        Bag { topics: vec![topic], messages: [0, 20, 40].map(message).into(), notes: vec![] }
    }

    #[test]
    fn stamps_keep_their_distance_to_the_time_of_sending() {
        let bag = bag(true);
        for (rate, milliseconds) in [(1.0, 40), (0.5, 80), (4.0, 10)] {
            let playback = Playback::new(&bag, NOW_NS, rate);
            let last = &bag.messages[2];
            assert_eq!(playback.due(last), Duration::from_millis(milliseconds));
            let sent: JointState = deserialize(&playback.restamped(&bag, last).unwrap()).unwrap();
            let due_ns = NOW_NS + playback.due(last).as_nanos() as i64;
            let before_ns = (due_ns - sent.header.stamp.nanoseconds()) as f64;
            assert!((before_ns - 4e6 / rate).abs() < 1e3, "{before_ns} ns at rate {rate}");
            assert_eq!((sent.name, sent.position), (vec!["knee".into()], vec![0.5]));
        }
    }

    #[test]
    fn every_transform_is_moved_and_zero_stays() {
        let transform = |nanoseconds: i64, child: &str| TransformStamped {
            header: Header {
                stamp: Time::from_nanoseconds(nanoseconds).unwrap(),
                frame_id: "base".into(),
            },
            child_frame_id: child.into(),
            translation: Vector3 { x: 1.0, y: 2.0, z: 3.0 },
            rotation: Quaternion { x: 0.0, y: 0.0, z: 0.0, w: 1.0 },
        };
        let recorded = RECORDED_NS as i64 + 250_000_000;
        let sent = TfMessage { transforms: vec![transform(recorded, "arm"), transform(0, "tool")] };
        let topic = topic("/tf", TfMessage::TYPE, false);
        let data = serialize(&sent).unwrap();
        let message = BagMessage { topic: 0, log_time_ns: RECORDED_NS, data };
        let bag = Bag { topics: vec![topic], messages: vec![message], notes: vec![] };
        let playback = Playback::new(&bag, NOW_NS, 1.0);
        let data = playback.restamped(&bag, &bag.messages[0]).unwrap();
        let expected = vec![transform(NOW_NS + 250_000_000, "arm"), transform(0, "tool")];
        assert_eq!(deserialize::<TfMessage>(&data).unwrap().transforms, expected);
    }

    #[test]
    fn messages_without_a_header_or_a_stamp_stay_as_they_are() {
        let without_header = bag(false);
        let playback = Playback::new(&without_header, NOW_NS, 1.0);
        let message = &without_header.messages[1];
        assert_eq!(playback.restamped(&without_header, message).unwrap(), message.data);

        let mut without_stamp = bag(true);
        write_stamp(&mut without_stamp.messages[1].data, Time { sec: 0, nanosec: 0 }).unwrap();
        let message = &without_stamp.messages[1];
        assert_eq!(playback.restamped(&without_stamp, message).unwrap(), message.data);
    }

    #[test]
    fn a_message_too_short_for_its_header_is_refused() {
        let mut bag = bag(true);
        bag.messages[1].data.truncate(9);
        let playback = Playback::new(&bag, NOW_NS, 1.0);
        assert!(playback.restamped(&bag, &bag.messages[1]).is_err());
    }

    #[test]
    fn rounds_are_a_mean_gap_apart() {
        let bag = bag(true);
        assert_eq!(Playback::new(&bag, 0, 2.0).period(&bag), Duration::from_millis(30));
        assert_eq!(Playback::new(&bag, 0, 2.0).period(&Bag::default()), PAUSE_OF_ONE);
    }
}
