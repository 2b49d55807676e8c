//! Cameras that are paired by stamp.

use super::*;

/// Frames of two cameras until `until_ms`, in the order in which they arrive: 30 Hz at once, 20 Hz after `delay_ms`.
fn play(history: &mut History, until_ms: i64, delay_ms: i64) {
    for now in 0..=until_ms {
        if now % 33 == 0 {
            history.insert_frame(0, stamp(now), frame(now), at(now), STAMP).expect("frame");
        }
        let taken = now - delay_ms;
        if taken >= 0 && taken % 50 == 0 {
            history.insert_frame(1, stamp(taken), frame(taken), at(now), STAMP).expect("frame");
        }
    }
    history
        .insert_state(0, Some(stamp(until_ms)), sample(0.5), at(until_ms), STAMP, ANY)
        .expect("new");
}

fn delta_0_stamps(sighting: &Sighting) -> Vec<i64> {
    let shown = sighting.readings.iter().filter(|reading| reading.delta == 0);
    let cameras = shown.filter(|reading| reading.topic.ends_with("/image"));
    cameras.map(|reading| (reading.stamp_ns - START) / MS).collect()
}

#[test]
fn case_52_a_camera_that_is_delayed_in_transport_is_paired_by_stamp() {
    for deltas in [&[0][..], &[-15, 0]] {
        for until_ms in 2_000..2_200 {
            let mut history = History::new(inputs(&["exterior", "wrist"], deltas));
            play(&mut history, until_ms, 80);
            let now = at(until_ms);
            let sighting = history.observation(now, "wave", &GATES).expect("complete");
            let [exterior, wrist] = delta_0_stamps(&sighting)[..] else { panic!("two cameras") };
            // The newest of the slow camera, and of the fast one what lies nearest to it: half a period at most.
            assert_eq!(wrist, (until_ms - 80) / 50 * 50);
            assert!((exterior - wrist).abs() <= 17, "{exterior} ms and {wrist} ms at {until_ms}");
            assert_eq!(sighting.camera_skew_ns, (exterior - wrist).abs() * MS);
            let frames = &sighting.observation.frames;
            assert_eq!(*frames["exterior"].last().expect("now"), frame(exterior));
            assert_eq!(*frames["wrist"].last().expect("now"), frame(wrist));
        }
    }
}

#[test]
fn deltas_count_from_the_paired_frame() {
    let mut history = History::new(inputs(&["exterior", "wrist"], &[-15, 0]));
    play(&mut history, 3_000, 80);
    let sighting = history.observation(at(3_000), "wave", &GATES).expect("complete");
    let exterior: Vec<_> = sighting.readings.iter().filter(|r| r.input == "exterior").collect();
    let back_ms = (exterior[1].stamp_ns - exterior[0].stamp_ns) / MS;
    assert!((back_ms - 1_000).abs() <= 33, "{back_ms} ms back");
    // The newest frame of this camera is of 2 970 ms.
    assert!(exterior[1].stamp_ns < stamp(2_940));
}

#[test]
fn a_single_camera_shows_its_newest_frame() {
    let mut history = ego();
    for ms in [0, 33, 66] {
        history.insert_frame(0, stamp(ms), frame(ms), at(ms), STAMP).expect("frame");
    }
    history.insert_state(0, Some(stamp(10)), sample(0.5), at(66), STAMP, ANY).expect("sample");
    let sighting = history.observation(at(70), "wave", &GATES).expect("complete");
    assert_eq!(sighting.observation.frames["ego"], [frame(66)]);
    assert_eq!(sighting.camera_skew_ns, 0);
}

#[test]
fn memory_of_paired_cameras_is_bounded_whatever_rate_and_step() {
    for (deltas, step_ns, most) in [
        (&[0][..], 50 * MS, 42),
        (&[0], 10_000 * MS, 34),
        (&[-15, 0], 1_000 * MS / 15, 46 + 48),
        (&[-2, 0], 10_000 * MS, 34 + 8),
    ] {
        let mut history = History::new(Inputs { step_ns, ..inputs(&["a", "b"], deltas) });
        let picture = frame(1);
        for n in 0..40_000 {
            history.insert_frame(0, stamp(n), picture.clone(), at(n), STAMP).expect("frame");
        }
        let frames = history.cameras[0].source.track.len();
        assert!(frames <= most, "{frames} frames with {deltas:?} of {step_ns} ns");
    }
}
