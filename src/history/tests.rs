mod gates;
mod pairing;

use super::*;
use proptest::prelude::*;

const MS: i64 = 1_000_000;
/// An arbitrary time of day for the clocks of the tests.
const START: i64 = 1_700_000_000_000_000_000;

const GATES: Gates =
    Gates { camera_max_age_ns: 500 * MS, state_max_age_ns: 200 * MS, ..Gates::OPEN };
/// No limit to the speed of joints.
const ANY: f64 = 0.0;
const STAMP: Timeline = Timeline::Stamp;

fn at(ms: i64) -> Moment {
    Moment { ros_ns: START + ms * MS, steady_ns: ms * MS }
}

fn stamp(ms: i64) -> i64 {
    START + ms * MS
}

/// A frame that can be told from others.
fn frame(number: i64) -> Arc<Frame> {
    let rgb: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(3 * 64 * 64).collect();
    Arc::new(Frame::new(64, 64, rgb).expect("valid"))
}

fn sample(value: f64) -> StateSample {
    [("arm".to_owned(), vec![value, -value]), ("waist".to_owned(), vec![2.0 * value])].into()
}

fn inputs(cameras: &[&str], frame_deltas: &[i32]) -> Inputs {
    let camera = |key: &&str| CameraInput { key: key.to_string(), topic: format!("/{key}/image") };
    let groups = vec!["arm".to_owned(), "waist".to_owned()];
    Inputs {
        cameras: cameras.iter().map(camera).collect(),
        states: vec![StateInput {
            topic: "/joint_states".to_owned(),
            groups,
            joints: [("arm".to_owned(), vec!["shoulder".to_owned(), "elbow".to_owned()])].into(),
            stamped: true,
        }],
        frame_deltas: frame_deltas.to_vec(),
        step_ns: 1_000 * MS / 15,
    }
}

fn ego() -> History {
    History::new(inputs(&["ego"], &[0]))
}

fn waiting(history: &mut History, now: Moment) -> String {
    history.observation(now, "wave", &GATES).expect_err("waits").to_string()
}

#[test]
fn case_76_waits_in_words_until_everything_has_come() {
    let mut history = ego();
    let text = waiting(&mut history, at(0));
    assert!(text.contains("camera 'ego' (topic /ego/image): no frame yet"), "{text}");
    assert!(text.contains("state arm, waist (topic /joint_states): no sample yet"), "{text}");

    history.insert_frame(0, stamp(10), frame(1), at(12), STAMP).expect("frame");
    let text = waiting(&mut history, at(20));
    assert_eq!(text, "state arm, waist (topic /joint_states): no sample yet");

    history.insert_state(0, Some(stamp(15)), sample(0.5), at(16), STAMP, ANY).expect("sample");
    let sighting = history.observation(at(20), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.stamp_ns, stamp(15));
    assert_eq!(sighting.observation.instruction, "wave");
    assert_eq!(sighting.observation.frames["ego"], [frame(1)]);
    assert_eq!(sighting.observation.state, sample(0.5));
    let stamps: Vec<_> = sighting.readings.iter().map(|r| (r.input.as_str(), r.stamp_ns)).collect();
    assert_eq!(stamps, [("ego", stamp(10)), ("arm", stamp(15)), ("waist", stamp(15))]);
}

#[test]
fn an_instruction_is_waited_for() {
    let mut history = ego();
    for blank in ["", " \n"] {
        let error = history.observation(at(0), blank, &GATES).expect_err("no instruction");
        assert!(error.to_string().contains("~/set_instruction"), "{error}");
    }
}

#[test]
fn case_30_waits_for_a_clock_that_has_not_started() {
    let mut history = ego();
    let text = waiting(&mut history, Moment { ros_ns: 0, steady_ns: 5 });
    assert!(text.contains("/clock"), "{text}");
    // The first reading of the clock is no jump.
    history.advance(Moment { ros_ns: 5_000_000 * MS, steady_ns: 6 });
    assert_eq!(history.take_clock_jump(), None);
}

#[test]
fn case_01_a_stopped_camera_is_stale_by_its_stamp() {
    let mut history = ego();
    history.insert_frame(0, stamp(0), frame(1), at(5), STAMP).expect("frame");
    for ms in [400, 490, 510] {
        history.insert_state(0, Some(stamp(ms)), sample(0.1), at(ms), STAMP, ANY).expect("sample");
    }
    assert!(history.observation(at(500), "wave", &GATES).is_ok());
    let text = waiting(&mut history, at(612));
    assert!(text.contains("camera 'ego'"), "{text}");
    assert!(text.contains("0.612 s old (limit 0.500 s), nothing received for 0.607 s"), "{text}");
}

#[test]
fn messages_that_are_received_do_not_make_old_stamps_fresh() {
    let mut history = ego();
    history.insert_frame(0, stamp(0), frame(1), at(900), STAMP).expect("frame");
    history.insert_state(0, Some(stamp(900)), sample(0.1), at(900), STAMP, ANY).expect("sample");
    let text = waiting(&mut history, at(901));
    assert!(
        text.contains("0.901 s old") && text.contains("nothing received for 0.001 s"),
        "{text}"
    );
}

#[test]
fn refused_messages_are_what_is_waited_for() {
    let mut history = ego();
    history.refuse(
        Input::State(0),
        "joint 'left_elbow' (group 'arm') is missing".to_owned(),
        at(1),
    );
    history.refuse(Input::Camera(0), "encoding 'yuv422_yuy2' is not supported".to_owned(), at(1));
    let text = waiting(&mut history, at(2));
    assert!(
        text.contains("the latest was refused: joint 'left_elbow' (group 'arm') is missing"),
        "{text}"
    );
    assert!(text.contains("the latest was refused: encoding 'yuv422_yuy2'"), "{text}");

    history.insert_state(0, Some(stamp(3)), sample(0.5), at(3), STAMP, ANY).expect("sample");
    assert!(!waiting(&mut history, at(4)).contains("left_elbow"));
    history.refuse(Input::Camera(9), "no such camera".to_owned(), at(5));
}

#[test]
fn case_54_stamps_of_another_clock_are_refused_with_a_hint() {
    let mut history = ego();
    let behind = [0, 5_000 * MS, START - 61_000 * MS];
    for bad in behind.into_iter().chain([START + 1_000 * MS, i64::MAX, i64::MIN]) {
        let error = history.insert_frame(0, bad, frame(1), at(0), STAMP).expect_err("other clock");
        assert!(error.to_string().contains("`timeline` to receive"), "{error}");
    }
    let error =
        history.insert_frame(0, 5_000 * MS, frame(1), at(0), STAMP).expect_err("other clock");
    assert!(error.to_string().contains("1699999995.000 s behind the node's clock"), "{error}");
    assert!(waiting(&mut history, at(1)).contains("comes from another clock"));

    // Skew of two machines is none of that.
    history.insert_frame(0, stamp(100), frame(1), at(0), STAMP).expect("a little ahead");
}

#[test]
fn case_54_timeline_receive_takes_any_stamp() {
    let mut history = ego();
    for ms in [10, 20] {
        history.insert_frame(0, 0, frame(ms), at(ms), Timeline::Receive).expect("frame");
        history
            .insert_state(0, Some(77), sample(ms as f64), at(ms + 1), Timeline::Receive, ANY)
            .expect("sample");
    }
    let sighting = history.observation(at(30), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.stamp_ns, stamp(21));
    assert_eq!(sighting.observation.frames["ego"], [frame(20)]);
    // A simulated clock can stand still between two messages.
    history.insert_frame(0, 0, frame(3), at(20), Timeline::Receive).expect("same time again");
    let sighting = history.observation(at(30), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.frames["ego"], [frame(3)]);
}

#[test]
fn one_entry_per_stamp_and_none_out_of_order() {
    let mut history = ego();
    history.insert_frame(0, stamp(100), frame(1), at(100), STAMP).expect("first");
    let repeated = history.insert_frame(0, stamp(100), frame(2), at(101), STAMP);
    assert_eq!(repeated, Err(Refused::Repeated { stamp_ns: stamp(100) }));
    let late = history.insert_frame(0, stamp(60), frame(3), at(102), STAMP);
    assert_eq!(late, Err(Refused::Late { behind_ns: 40 * MS }));
    history.insert_state(0, Some(stamp(100)), sample(0.5), at(103), STAMP, ANY).expect("sample");
    let sighting = history.observation(at(104), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.frames["ego"], [frame(1)]);
}

#[test]
fn a_message_that_takes_long_to_read_is_no_jump_of_the_clock() {
    let mut history = ego();
    history.advance(at(1_000));
    history.insert_frame(0, stamp(700), frame(1), at(710), STAMP).expect("frame");
    history.advance(at(1_001));
    assert_eq!((history.clock_jumps(), history.newest().len()), (0, 1));
}

#[test]
fn a_clock_that_jumps_clears_the_history() {
    for (now, by_ns) in [
        (Moment { ros_ns: stamp(-3_000), steady_ns: 60 * MS }, -3_050 * MS),
        (Moment { ros_ns: stamp(3_600_050), steady_ns: 60 * MS }, 3_600_000 * MS),
    ] {
        let mut history = ego();
        history.insert_frame(0, stamp(50), frame(1), at(50), STAMP).expect("frame");
        history.insert_state(0, Some(stamp(50)), sample(0.5), at(50), STAMP, ANY).expect("sample");
        let text = history.observation(now, "wave", &GATES).expect_err("cleared").to_string();
        assert!(text.contains("no frame since the clock jumped, 0.000 s ago"), "{text}");
        assert!(text.contains("no sample since the clock jumped"), "{text}");
        assert_eq!(history.take_clock_jump(), Some(ClockJump { by_ns }));
        assert_eq!(history.take_clock_jump(), None);
        // Stamps of the new time are taken although they are older.
        history.insert_frame(0, now.ros_ns, frame(2), now, STAMP).expect("new time");
    }
}

#[test]
fn calls_that_overtake_each_other_are_no_jump() {
    let mut history = ego();
    history.insert_frame(0, stamp(50), frame(1), at(50), STAMP).expect("frame");
    history.insert_state(0, Some(stamp(49)), sample(0.5), at(49), STAMP, ANY).expect("sample");
    assert_eq!(history.take_clock_jump(), None);
    assert!(history.observation(at(51), "wave", &GATES).is_ok());
}

#[test]
fn deltas_take_the_frame_that_is_nearest_in_time() {
    let mut history = History::new(inputs(&["wrist"], &[-15, 0]));
    // 30 Hz; frame number n is taken at n * 33 ms.
    for n in 0..60 {
        history.insert_frame(0, stamp(n * 33), frame(n), at(n * 33), STAMP).expect("frame");
    }
    history
        .insert_state(0, Some(stamp(59 * 33)), sample(0.5), at(59 * 33), STAMP, ANY)
        .expect("sample");
    let sighting = history.observation(at(59 * 33 + 1), "wave", &GATES).expect("complete");
    let frames = &sighting.observation.frames["wrist"];
    assert_eq!(frames[1], frame(59));
    let reading = &sighting.readings[0];
    assert_eq!(reading.delta, -15);
    let error_ms = (reading.stamp_ns - stamp(59 * 33 - 1_000)) / MS;
    assert!(error_ms.abs() <= 34, "{error_ms} ms from one second ago");
}

#[test]
fn case_36_the_oldest_frame_is_repeated_at_the_start() {
    let mut history = History::new(inputs(&["wrist"], &[-15, 0]));
    history.insert_frame(0, stamp(0), frame(1), at(0), STAMP).expect("frame");
    history.insert_state(0, Some(stamp(0)), sample(0.5), at(0), STAMP, ANY).expect("sample");
    let sighting = history.observation(at(1), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.frames["wrist"], [frame(1), frame(1)]);
    history.insert_frame(0, stamp(67), frame(2), at(67), STAMP).expect("frame");
    let sighting = history.observation(at(68), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.frames["wrist"], [frame(1), frame(2)]);
}

#[test]
fn memory_is_bounded_whatever_the_rate() {
    let mut history = History::new(inputs(&["fast"], &[-15, 0]));
    for n in 0..20_000 {
        history.insert_frame(0, stamp(n), frame(n), at(n), STAMP).expect("frame");
    }
    let frames: usize = history.cameras[0].source.track.len();
    assert!(frames <= 48, "{frames} frames of 1.5 s at half a step of 1/15 s");
    let mut history = ego();
    for n in 0..1_000 {
        history.insert_frame(0, stamp(n), frame(n), at(n), STAMP).expect("frame");
    }
    assert_eq!(history.cameras[0].source.track.len(), 1);
}

#[test]
fn case_36_a_new_goal_never_sees_a_frame_of_the_one_before() {
    let mut history = History::new(inputs(&["exterior", "wrist"], &[-15, 0]));
    let show = |history: &mut History, ms: i64, number: i64, camera: usize| {
        history.insert_frame(camera, stamp(ms), frame(number), at(ms + 40), STAMP).expect("taken");
    };
    for n in 0..30 {
        show(&mut history, n * 33, n, 0);
        show(&mut history, n * 50 - 500, n, 1);
    }
    history.insert_state(0, Some(stamp(990)), sample(0.5), at(990), STAMP, ANY).expect("sample");
    assert!(history.observation(at(1_000), "wave", &GATES).is_ok());

    history.begin_goal(at(1_000));
    // Taken before the goal, received after it.
    show(&mut history, 990, 100, 0);
    show(&mut history, 999, 101, 1);
    let text = waiting(&mut history, at(1_001));
    let since =
        "(topic /exterior/image): no frame since the instruction or goal changed, 0.001 s ago";
    assert!(text.contains(since), "{text}");
    assert!(text.contains("'wrist'") && !text.contains("arm"), "{text}");
    show(&mut history, 1_000, 102, 0);
    show(&mut history, 1_010, 103, 1);
    show(&mut history, 1_100, 104, 0);
    show(&mut history, 1_110, 105, 1);
    let seen = history.observation(at(1_150), "fold", &GATES).expect("complete").observation;
    assert_eq!(seen.frames["exterior"], [frame(102), frame(104)]);
    assert_eq!(seen.frames["wrist"], [frame(103), frame(105)]);

    // A policy that sees the newest frame alone goes on with it.
    let mut single = ego();
    single.insert_frame(0, stamp(10), frame(1), at(12), STAMP).expect("frame");
    single.insert_state(0, Some(stamp(15)), sample(0.5), at(16), STAMP, ANY).expect("sample");
    single.begin_goal(at(20));
    assert!(single.observation(at(21), "fold", &GATES).is_ok());
}

#[test]
fn two_cameras_of_different_rates_each_go_back_one_second() {
    let mut history = History::new(inputs(&["exterior", "wrist"], &[-15, 0]));
    for ms in 0..3_000 {
        for (camera, period) in [(0, 33), (1, 50)] {
            if ms % period == 0 {
                history.insert_frame(camera, stamp(ms), frame(ms), at(ms), STAMP).expect("frame");
            }
        }
    }
    history
        .insert_state(0, Some(stamp(2_999)), sample(0.5), at(2_999), STAMP, ANY)
        .expect("sample");
    let sighting = history.observation(at(3_000), "wave", &GATES).expect("complete");
    // The wrist's newest frame is of 2 950 ms; frames are 33 ms and 50 ms apart, 15 steps are one second.
    let frames = &sighting.observation.frames;
    assert_eq!(frames["exterior"], [frame(1_947), frame(2_937)]);
    assert_eq!(frames["wrist"], [frame(1_950), frame(2_950)]);
    assert_eq!(sighting.camera_skew_ns, 13 * MS);
}

#[test]
fn messages_without_a_header_do_not_date_the_observation() {
    let mut inputs = inputs(&["ego"], &[0]);
    let groups = vec!["gripper".to_owned()];
    inputs.states.push(StateInput { topic: "/gripper".to_owned(), groups, ..Default::default() });
    let mut history = History::new(inputs);
    history.insert_frame(0, stamp(100), frame(1), at(120), STAMP).expect("frame");
    history.insert_state(0, Some(stamp(90)), sample(0.5), at(95), STAMP, ANY).expect("sample");
    let opening = StateSample::from([("gripper".to_owned(), vec![0.25])]);
    history.insert_state(1, None, opening, at(150), STAMP, ANY).expect("no stamp is needed");
    let sighting = history.observation(at(160), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.stamp_ns, stamp(100));
    assert_eq!(sighting.observation.state["gripper"], [0.25]);
    assert_eq!(sighting.readings.last().map(|reading| reading.stamp_ns), Some(stamp(150)));
    // It is as stale as anything else.
    history.insert_frame(0, stamp(400), frame(2), at(420), STAMP).expect("frame");
    history.insert_state(0, Some(stamp(400)), sample(0.5), at(420), STAMP, ANY).expect("sample");
    let text = waiting(&mut history, at(420));
    assert!(
        text.starts_with("state gripper (topic /gripper): the newest sample is 0.270 s"),
        "{text}"
    );
}

#[test]
fn an_input_that_never_came_has_not_been_quiet_since_a_new_goal() {
    let mut history = History::new(inputs(&["exterior"], &[-15, 0]));
    history.begin_goal(at(50));
    assert!(waiting(&mut history, at(51)).contains("no frame yet"));
    history.insert_frame(0, stamp(100), frame(1), at(100), STAMP).expect("frame");
    history.begin_goal(at(200));
    history.refuse(Input::Camera(0), "step is 7".to_owned(), at(300));
    let text = waiting(&mut history, at(1_700));
    let since = "no usable frame since the instruction or goal changed, 1.500 s ago, the latest was refused: step is 7";
    assert!(text.contains(since), "{text}");
}

/// A message of the property below: which input, and its stamp.
fn message() -> impl Strategy<Value = (usize, i64)> {
    (0usize..3, 0i64..400)
}

proptest! {
    /// Whatever the order in which messages arrive, the observation is the same: no message is lost for coming late,
    /// and none wins for coming last.
    #[test]
    fn arrival_order_never_changes_the_observation(
        (messages, shuffled) in proptest::collection::btree_set(message(), 1..60)
            .prop_map(|set| set.into_iter().collect::<Vec<_>>())
            .prop_flat_map(|messages| (Just(messages.clone()), Just(messages).prop_shuffle())),
        deltas in proptest::sample::select(vec![vec![0], vec![-1, 0], vec![-15, 0], vec![-4, -2, 0]]),
    ) {
        let see = |order: &[(usize, i64)]| {
            let mut history = History::new(inputs(&["ego", "wrist"], &deltas));
            for &(input, number) in order {
                let stamp_ns = stamp(number * 10);
                let now = at(4_000);
                let _ = match input {
                    2 => history.insert_state(0, Some(stamp_ns), sample(number as f64), now, STAMP, ANY),
                    camera => history.insert_frame(camera, stamp_ns, frame(number), now, STAMP),
                };
            }
            match history.observation(at(4_000), "wave", &Gates::OPEN) {
                Ok(seen) => {
                    let observation = seen.observation;
                    Ok((observation.stamp_ns, observation.frames, observation.state, seen.readings))
                }
                // What is missing is the same; what the last message was refused for is not.
                Err(waiting) => Err(waiting.0.len()),
            }
        };
        prop_assert_eq!(see(&messages), see(&shuffled));
    }
}
