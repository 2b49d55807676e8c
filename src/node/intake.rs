//! The thread that encodes frames before a request needs them; nothing that receives messages ever waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::contract::Frame;
use crate::encode::{EncodeError, FrameIntake};
use crate::locked::locked;

/// Frames that may wait. Where encoding takes longer than they come, the newest count.
const MAX_WAITING: usize = 8;

/// Handle of the thread, which ends with it.
pub struct Intake {
    queue: Arc<Queue>,
}

struct Arrival {
    camera: usize,
    frame: Arc<Frame>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Oldest first.
    frames: VecDeque<Arrival>,
    closed: bool,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        locked(&self.waiting)
    }

    /// The next frame, or `None` once there will be no more.
    fn next(&self) -> Option<Arrival> {
        let wanted = |waiting: &mut Waiting| waiting.frames.is_empty() && !waiting.closed;
        let waiting = self.changed.wait_while(self.waiting(), wanted);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if waiting.closed { None } else { waiting.frames.pop_front() }
    }
}

impl Intake {
    /// Starts the thread. `cameras` are the keys by number; `refused` hears of every frame that cannot be encoded, which
    /// the request that needs it will report as well.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        cameras: Vec<String>,
        encoder: Arc<dyn FrameIntake>,
        mut refused: impl FnMut(EncodeError) + Send + 'static,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let of_thread = Arc::clone(&queue);
        std::thread::Builder::new().name("frame-intake".to_owned()).spawn(move || {
            while let Some(Arrival { camera, frame }) = of_thread.next() {
                // Where nobody else holds the frame any more, no request will have it.
                if Arc::strong_count(&frame) > 1
                    && let Err(error) = encoder.arrived(&cameras[camera], &frame)
                {
                    refused(error);
                }
            }
        })?;
        Ok(Self { queue })
    }

    /// Hands in a frame of camera number `camera`; never waits for an encoder. A request must be given the same `Arc`.
    pub fn arrived(&self, camera: usize, frame: Arc<Frame>) {
        let mut waiting = self.queue.waiting();
        if waiting.frames.len() == MAX_WAITING {
            waiting.frames.pop_front();
        }
        waiting.frames.push_back(Arrival { camera, frame });
        self.queue.changed.notify_one();
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.queue.waiting().closed = true;
        self.queue.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Tells the side of every frame that it is given, then waits for a token; refuses frames of camera `bad`.
    struct Fake {
        seen: Mutex<Sender<(String, u32)>>,
        tokens: Mutex<Receiver<()>>,
    }

    impl FrameIntake for Fake {
        fn arrived(&self, camera: &str, frame: &Arc<Frame>) -> Result<(), EncodeError> {
            let _ = self.seen.lock().unwrap().send((camera.to_owned(), frame.width()));
            let _ = self.tokens.lock().unwrap().recv();
            match camera {
                "bad" => Err(EncodeError::LetterboxOpen),
                _ => Ok(()),
            }
        }
    }

    struct Rig {
        intake: Intake,
        seen: Receiver<(String, u32)>,
        tokens: Sender<()>,
        refused: Receiver<String>,
    }

    fn rig() -> Rig {
        let (see, seen) = channel();
        let (tokens, take) = channel();
        let (refuse, refused) = channel();
        let fake = Fake { seen: Mutex::new(see), tokens: Mutex::new(take) };
        let cameras = vec!["ego".to_owned(), "bad".to_owned()];
        let tell = move |error: EncodeError| drop(refuse.send(error.to_string()));
        let intake = Intake::spawn(cameras, Arc::new(fake), tell).expect("a thread");
        Rig { intake, seen, tokens, refused }
    }

    fn frame(side: u32) -> Arc<Frame> {
        Arc::new(Frame::new(side, side, vec![0; 3 * (side * side) as usize]).expect("valid"))
    }

    #[test]
    fn every_frame_is_encoded_once_and_a_refused_one_ends_nothing() {
        let rig = rig();
        let frames: Vec<_> = (64..70).map(frame).collect();
        for (number, frame) in frames.iter().enumerate() {
            let camera = number % 2;
            rig.intake.arrived(camera, frame.clone());
            rig.tokens.send(()).unwrap();
            let key = ["ego", "bad"][camera].to_owned();
            assert_eq!(rig.seen.recv_timeout(PATIENCE), Ok((key, frame.width())));
        }
        for _ in 0..3 {
            let text = rig.refused.recv_timeout(PATIENCE).expect("every second frame");
            assert_eq!(text, EncodeError::LetterboxOpen.to_string());
        }
        // Fake and closure go with the thread.
        drop(rig.intake);
        assert!(rig.seen.recv_timeout(PATIENCE).is_err(), "a frame was encoded twice");
        assert!(rig.refused.recv_timeout(PATIENCE).is_err());
    }

    #[test]
    fn a_slow_encoder_holds_nobody_up_and_misses_the_oldest() {
        let rig = rig();
        let frames: Vec<_> = (64..64 + 2 * MAX_WAITING as u32).map(frame).collect();
        rig.intake.arrived(0, frames[0].clone());
        rig.seen.recv_timeout(PATIENCE).expect("the first is being encoded");
        frames[1..].iter().for_each(|frame| rig.intake.arrived(0, frame.clone()));
        let kept = &frames[frames.len() - MAX_WAITING..];
        for frame in kept {
            rig.tokens.send(()).unwrap();
            assert_eq!(rig.seen.recv_timeout(PATIENCE), Ok(("ego".to_owned(), frame.width())));
        }
    }

    #[test]
    fn frames_that_nobody_holds_are_passed_over() {
        let rig = rig();
        let [first, last] = [frame(64), frame(66)];
        rig.intake.arrived(0, first.clone());
        rig.seen.recv_timeout(PATIENCE).expect("the first is being encoded");
        rig.intake.arrived(0, frame(65));
        rig.intake.arrived(0, last.clone());
        rig.tokens.send(()).unwrap();
        assert_eq!(rig.seen.recv_timeout(PATIENCE), Ok(("ego".to_owned(), 66)));
    }
}
