//! The gates, and the causes that they give.

use super::*;

/// What the history waits for, with the gates given.
fn waiting_for(history: &mut History, ms: i64, gates: &Gates) -> Vec<WaitingFor> {
    history.observation(at(ms), "wave", gates).err().map_or_else(Vec::new, |waiting| waiting.0)
}

/// A history that has a fresh joint state.
fn with_state(cameras: &[&str], ms: i64) -> History {
    let mut history = History::new(inputs(cameras, &[0]));
    history.insert_state(0, Some(stamp(ms)), sample(0.5), at(ms), STAMP, ANY).expect("sample");
    history
}

#[test]
fn case_51_cameras_that_are_too_far_apart_are_not_shown() {
    let limited = |limit_ms: i64| Gates { camera_skew_max_ns: limit_ms * MS, ..GATES };
    let mut history = with_state(&["ego", "left", "right"], 1_000);
    for (camera, ms) in [(0, 900), (1, 1_000), (2, 800)] {
        history.insert_frame(camera, stamp(ms), frame(ms), at(1_000), STAMP).expect("frame");
    }
    let lacks = waiting_for(&mut history, 1_000, &limited(150));
    let [skew @ WaitingFor::Skew { .. }] = &lacks[..] else { panic!("{lacks:?}") };
    assert_eq!((skew.cause(), skew.input(), skew.is_bad()), (Cause::Skewed, "right", true));
    let text = skew.to_string();
    for part in
        ["'right' is 0.200 s older than that of 'left'", "limit 0.150 s", "`camera_skew_max_ms`"]
    {
        assert!(text.contains(part), "{text}");
    }
    for limit_ms in [0, 200, 201] {
        assert!(history.observation(at(1_000), "wave", &limited(limit_ms)).is_ok(), "{limit_ms}");
    }
    // A camera that is stale is named as that alone.
    let lacks = waiting_for(&mut history, 1_350, &limited(150));
    let causes: Vec<_> = lacks.iter().map(|lack| (lack.input(), lack.cause())).collect();
    assert_eq!(causes, [("right", Cause::Stale), ("/joint_states", Cause::Stale)]);
}

#[test]
fn case_01_a_frozen_camera_is_not_shown() {
    let gates = Gates { frozen_camera_frames: 3, ..GATES };
    let mut history = with_state(&["ego"], 100);
    let mut show = |ms: i64, number: i64| {
        history.insert_frame(0, stamp(ms), frame(number), at(ms), STAMP).expect("frame");
        history.insert_state(0, Some(stamp(ms)), sample(0.5), at(ms), STAMP, ANY).expect("sample");
        (waiting_for(&mut history, ms, &gates), waiting_for(&mut history, ms, &GATES))
    };
    for ms in [133, 166, 199] {
        assert_eq!(show(ms, 7), (vec![], vec![]), "{ms} ms");
    }
    let (frozen, open) = show(232, 7);
    let [camera] = &frozen[..] else { panic!("{frozen:?}") };
    assert_eq!((camera.cause(), camera.input()), (Cause::Frozen, "ego"));
    let text = camera.to_string();
    assert!(text.contains("camera 'ego' (topic /ego/image): frozen: the last 3 frames"), "{text}");
    assert!(text.contains("(limit 3, `frozen_camera_frames`)"), "{text}");
    assert_eq!(open, [], "0 is no limit");
    assert_eq!(show(265, 7).0.len(), 1);
    assert_eq!(show(298, 8), (vec![], vec![]));
    assert_eq!(show(331, 7).0, []);
}

#[test]
fn a_jump_of_the_clock_thaws_no_camera_and_an_old_frame_neither() {
    let gates = Gates { frozen_camera_frames: 2, ..GATES };
    let mut history = History::new(inputs(&["ego", "wrist"], &[0]));
    for ms in [0, 33, 66] {
        history.insert_frame(0, stamp(ms), frame(7), at(ms), STAMP).expect("frame");
    }
    // Taken before the others.
    history.insert_frame(0, stamp(50), frame(8), at(70), STAMP).expect("frame");
    let is_frozen = |history: &mut History, now| {
        let waiting = history.observation(now, "wave", &gates).expect_err("no wrist");
        waiting.causes().any(|cause| cause == Cause::Frozen)
    };
    assert!(is_frozen(&mut history, at(71)));
    let earlier = Moment { ros_ns: stamp(-60_000), steady_ns: 100 * MS };
    history.insert_frame(0, earlier.ros_ns, frame(7), earlier, STAMP).expect("frame");
    assert!(is_frozen(&mut history, earlier));
    let later = Moment { ros_ns: stamp(-59_900), steady_ns: 200 * MS };
    history.insert_frame(0, later.ros_ns, frame(9), later, STAMP).expect("frame");
    assert!(!is_frozen(&mut history, later));
}

#[test]
fn case_45_a_robot_at_rest_before_a_picture_that_changes_is_seen() {
    let gates = Gates { frozen_camera_frames: 1, ..GATES };
    let mut history = ego();
    for n in 1..200 {
        // One bit of one pixel.
        let mut rgb = vec![7; 3 * 64 * 64];
        rgb[3 * 64 * 64 - 1] ^= (n % 2) as u8;
        let picture = Arc::new(Frame::new(64, 64, rgb).expect("valid"));
        history.insert_frame(0, stamp(n * 33), picture, at(n * 33), STAMP).expect("frame");
        history
            .insert_state(0, Some(stamp(n * 33)), sample(0.5), at(n * 33), STAMP, 1e-3)
            .expect("at rest");
        assert_eq!(waiting_for(&mut history, n * 33, &gates), []);
    }
}

/// Joint samples at 100 Hz, and whether each was taken in.
fn feed(history: &mut History, samples: &[(i64, f64)], limit: f64) -> Vec<bool> {
    let take = |&(ms, value): &(i64, f64)| {
        history.insert_state(0, Some(stamp(ms)), sample(value), at(ms), STAMP, limit).is_ok()
    };
    samples.iter().map(take).collect()
}

#[test]
fn a_joint_that_jumps_is_refused_until_it_is_within_the_limit() {
    let mut history = ego();
    history.insert_frame(0, stamp(20), frame(1), at(20), STAMP).expect("frame");
    assert_eq!(feed(&mut history, &[(0, 0.0), (10, 0.29)], 30.0), [true, true]);
    let error = history
        .insert_state(0, Some(stamp(20)), sample(1.86), at(20), STAMP, 30.0)
        .expect_err("157 rad/s")
        .to_string();
    for part in ["joint 'shoulder' moved 1.570 rad in 0.010 s", "157.0 rad/s", "limit is 30 rad/s"]
    {
        assert!(error.contains(part), "{error}");
    }
    let lacks = waiting_for(&mut history, 20, &GATES);
    let [lack] = &lacks[..] else { panic!("{lacks:?}") };
    assert_eq!((lack.cause(), lack.input(), lack.is_bad()), (Cause::Jumped, "/joint_states", true));
    assert!(lack.to_string().ends_with(&format!("the latest sample was refused: {error}")));

    // What cannot be read meanwhile heals nothing; a sample near the last one that was taken in does.
    history.refuse(Input::State(0), "garbage".to_owned(), at(25));
    assert_eq!(waiting_for(&mut history, 25, &GATES)[0].cause(), Cause::Jumped);
    assert_eq!(feed(&mut history, &[(30, 0.3)], 30.0), [true]);
    assert_eq!(waiting_for(&mut history, 30, &GATES), []);
    // The same jump without limit; and slowly enough.
    assert_eq!(feed(&mut history, &[(40, 1.8), (50, 0.3)], 0.0), [true, true]);
    assert_eq!(feed(&mut history, &[(60, 1.8), (110, 1.8)], 30.0), [false, true]);
}

#[test]
fn what_cannot_be_compared_is_no_jump() {
    // A long gap, and a clock that goes back.
    let mut history = ego();
    assert_eq!(feed(&mut history, &[(0, 0.0), (1_001, 90.0)], 30.0), [true, true]);
    // Samples that are refused are no gap: the comparison is with the last one that was taken in.
    let refused = feed(&mut history, &[(1_600, 190.0), (2_200, 190.0), (4_400, 190.0)], 30.0);
    assert_eq!(refused, [false, false, true]);
    let earlier = Moment { ros_ns: stamp(-5_000), steady_ns: 4_410 * MS };
    let taken = history.insert_state(0, Some(earlier.ros_ns), sample(9.0), earlier, STAMP, 30.0);
    assert_eq!(taken, Ok(()));
    // The jitter of stamps is no speed, nor is that of arrival.
    let mut history = ego();
    let mut take = |stamp_ns: i64, value: f64, timeline| {
        history.insert_state(0, Some(stamp_ns), sample(value), at(0), timeline, 30.0)
    };
    assert_eq!(take(stamp(0), 0.0, STAMP), Ok(()));
    assert_eq!(take(stamp(0) + 1_000, 0.02, STAMP), Ok(()));
    assert!(take(stamp(0) + 2_000, 0.06, STAMP).is_err());
    assert_eq!(take(0, 0.5, Timeline::Receive), Err(Refused::Late { behind_ns: 1_000 }));
    let mut history = ego();
    for value in [0.0, 0.5, 1.0] {
        let taken = history.insert_state(0, Some(0), sample(value), at(0), Timeline::Receive, 30.0);
        assert_eq!(taken, Ok(()));
    }
    // Only joints have a limit: the waist of this robot is none.
    let mut history = ego();
    let waist = |value| StateSample::from([("waist".to_owned(), vec![value])]);
    for (ms, value) in [(0, 0.0), (10, 100.0)] {
        history.insert_state(0, Some(stamp(ms)), waist(value), at(ms), STAMP, 30.0).expect("any");
    }
}

#[test]
fn refusals_stay_visible_when_the_newest_frame_gets_stale() {
    let mut history = ego();
    history.insert_frame(0, stamp(300), frame(1), at(300), STAMP).expect("frame");
    history.refuse(Input::Camera(0), "encoding 'yuv422_yuy2' is not supported".to_owned(), at(990));
    feed(&mut history, &[(1_000, 0.0)], ANY);
    let [camera] = &waiting_for(&mut history, 1_000, &GATES)[..] else { panic!("the camera") };
    assert_eq!(camera.cause(), Cause::Refused);
    let text = camera.to_string();
    assert!(
        text.contains("0.700 s old") && text.contains("refused: encoding 'yuv422_yuy2'"),
        "{text}"
    );
    assert!(!text.contains("nothing received"), "{text}");
    // Once nothing comes at all, that is said too.
    let [camera, _] = &waiting_for(&mut history, 1_600, &GATES)[..] else { panic!("both") };
    assert_eq!(camera.cause(), Cause::Stale);
    let text = camera.to_string();
    assert!(
        text.contains("yuv422_yuy2") && text.contains("nothing received for 0.610 s"),
        "{text}"
    );
}

#[test]
fn every_cause_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> =
        Cause::ALL.iter().map(|cause| cause.name()).collect();
    assert_eq!(names.len(), Cause::ALL.len());
    let bad: Vec<_> = Cause::ALL.iter().filter(|c| c.is_bad()).map(|c| c.name()).collect();
    assert_eq!(bad, ["refused", "frozen", "skewed", "jumped", "publishers"]);
    let mut history = ego();
    let waiting = history.observation(at(0), "", &GATES).expect_err("nothing is there");
    let causes: Vec<_> = waiting.0.iter().map(|lack| (lack.input(), lack.cause().name())).collect();
    let missing =
        [("instruction", "no_instruction"), ("ego", "missing"), ("/joint_states", "missing")];
    assert_eq!(causes, missing);
    assert_eq!(waiting.causes().collect::<Vec<_>>(), [Cause::NoInstruction, Cause::Missing]);
}
