use nalgebra::{Isometry3, Translation3, UnitQuaternion, Vector3};
use proptest::prelude::*;

use super::link::{KEEP_NS, MAX_POSES};
use super::*;

const MS: i64 = 1_000_000;
const START: i64 = 1_700_000_000_000_000_000;

/// A turn about z by `yaw`, then a shift.
fn pose(x: f64, y: f64, z: f64, yaw: f64) -> Isometry3<f64> {
    Isometry3::new(Vector3::new(x, y, z), Vector3::z() * yaw)
}

fn at(milliseconds: i64) -> i64 {
    START + milliseconds * MS
}

/// base -> link (moving 0.01 m per 10 ms along x, turning) -> tip (fixed); and a camera beside.
fn arm() -> Transforms {
    let mut transforms = Transforms::default();
    for tick in 0..=10 {
        let moved = pose(0.01 * tick as f64, 0.0, 0.0, 0.02 * tick as f64);
        transforms.insert(at(10 * tick), "base", "link", moved, false).expect("new");
    }
    transforms.insert_static(0, "link", "tip", pose(0.0, 0.0, 0.5, 0.0)).expect("fixed");
    transforms.insert_static(0, "base", "camera", pose(0.0, 1.0, 0.0, 0.0)).expect("fixed");
    transforms
}

fn query<'a>(base: &'a str, tip: &'a str, at_ns: i64) -> Query<'a> {
    Query { base, tip, at_ns, max_gap_ns: 500 * MS }
}

fn near(found: &Isometry3<f64>, expected: &Isometry3<f64>) -> bool {
    let turn = found.rotation.angle_to(&expected.rotation);
    (found.translation.vector - expected.translation.vector).norm() < 1e-12 && turn < 1e-7
}

#[test]
fn chains_are_joined_and_moments_interpolated() {
    let transforms = arm();
    let found = transforms.lookup(&query("base", "tip", at(35))).expect("connected");
    assert!(near(&found.pose, &pose(0.035, 0.0, 0.5, 0.07)), "{}", found.pose);
    assert_eq!((found.at_ns, found.newest_ns), (at(35), Some(at(100))));
    // The other way round is the inverse.
    let back = transforms.lookup(&query("tip", "base", at(35))).expect("connected");
    assert!(near(&(back.pose * found.pose), &Isometry3::identity()));
    // Down one branch and up the other; a slash in front is no part of a name.
    let beside = transforms.lookup(&query("/camera", "/tip", at(30))).expect("connected");
    assert!(near(&beside.pose, &pose(0.03, -1.0, 0.5, 0.06)), "{}", beside.pose);
    // What lies above the common frame plays no part.
    let fixed = transforms.lookup(&query("link", "tip", at(5_000))).expect("fixed");
    assert!(near(&fixed.pose, &pose(0.0, 0.0, 0.5, 0.0)));
    assert_eq!((fixed.at_ns, fixed.newest_ns), (at(5_000), None));
}

#[test]
fn a_moment_that_is_not_known_yet_is_the_newest_known_one() {
    let mut transforms = arm();
    transforms.insert(at(60), "tip", "finger", pose(0.0, 0.0, 0.1, 0.0), false).expect("new");
    transforms.insert(at(70), "tip", "finger", pose(0.0, 0.0, 0.1, 0.0), false).expect("new");
    let found = transforms.lookup(&query("base", "finger", at(300))).expect("connected");
    assert_eq!((found.at_ns, found.newest_ns), (at(70), Some(at(70))));
    assert!(near(&found.pose, &pose(0.07, 0.0, 0.6, 0.14)), "{}", found.pose);
}

#[test]
fn what_cannot_be_answered_is_named() {
    let mut transforms = arm();
    let lookup = |transforms: &Transforms, base: &str, tip: &str, ms: i64| {
        transforms.lookup(&query(base, tip, at(ms))).expect_err("no pose").to_string()
    };
    let text = lookup(&transforms, "base", "tipp", 50);
    assert_eq!(text, "frame 'tipp' is in no transform on /tf or /tf_static; did you mean 'tip'?");
    assert!(
        lookup(&Transforms::default(), "base", "tip", 50).contains("'base' is in no transform")
    );
    let text = lookup(&transforms, "base", "tip", -20);
    assert!(text.contains("'link' is known only from 0.020 s after"), "{text}");

    transforms.insert(at(900), "base", "link", pose(0.0, 0.0, 0.0, 0.0), false).expect("new");
    let text = lookup(&transforms, "base", "tip", 500);
    assert!(
        text.contains("'link' has no pose for 0.800 s") && text.contains("limit 0.500"),
        "{text}"
    );

    transforms.insert_static(0, "map", "wall", pose(0.0, 0.0, 0.0, 0.0)).expect("fixed");
    let text = lookup(&transforms, "wall", "tip", 50);
    assert!(text.contains("the first hangs on 'map', the second on 'base'"), "{text}");

    transforms.insert_static(0, "base", "link", pose(0.0, 0.0, 0.0, 0.0)).expect("fixed");
    let text = lookup(&transforms, "base", "tip", 50);
    assert!(text.contains("'link' is on /tf and on /tf_static"), "{text}");
}

#[test]
fn circles_end() {
    let mut transforms = Transforms::default();
    for (parent, child) in [("a", "b"), ("b", "c"), ("c", "d")] {
        transforms.insert(at(0), parent, child, Isometry3::identity(), false).expect("new");
    }
    let closing = transforms.insert(at(0), "d", "a", Isometry3::identity(), false);
    let text = closing.expect_err("a circle").to_string();
    assert!(text.starts_with("the edge 'd' -> 'a' closes a circle"), "{text}");
    let error = transforms.lookup(&query("a", "d", at(0))).expect_err("a circle").to_string();
    assert!(error.contains("which the edge 'd' -> 'a' closes"), "{error}");
    for (parent, child) in [("a", "b"), ("b", "c"), ("c", "d")] {
        transforms.insert(at(1_100), parent, child, Isometry3::identity(), false).expect("new");
    }
    let mut wide = query("a", "d", at(1_100));
    assert!(transforms.lookup(&wide).is_ok(), "the chain goes on");
    wide.max_gap_ns = 2_000 * MS;
    assert!(transforms.lookup(&wide).is_err());
    // One that is fixed may never be sent again: it is kept, and the lookup names the circle.
    transforms.insert_static(0, "d", "a", Isometry3::identity()).expect("kept");
    let error = transforms.lookup(&query("a", "d", at(0))).expect_err("a circle");
    assert!(matches!(error, LookupError::Loop { .. }), "{error}");
    let closing = transforms.insert_static(0, "a", "d", Isometry3::identity());
    assert!(matches!(closing, Err(TransformRefused::Circle { .. })));
}

#[test]
fn a_wrong_edge_is_forgotten() {
    let mut transforms = Transforms::default();
    transforms.insert(at(0), "tip", "base", pose(0.0, 0.0, 0.0, 0.0), false).expect("new");
    let mut answers = |ms| {
        let _ = transforms.insert(at(ms), "base", "arm", pose(0.0, 0.0, 0.0, 0.0), false);
        let _ = transforms.insert(at(ms), "arm", "tip", pose(0.0, 0.0, 0.0, 0.0), false);
        transforms.lookup(&query("base", "tip", at(ms))).is_ok()
    };
    assert!(!answers(10) && !answers(5_000), "the wrong edge came first");
    assert!(answers(10_010) && answers(10_020));
    let late = transforms.insert(at(0), "tip", "base", pose(0.0, 0.0, 0.0, 0.0), false);
    assert!(matches!(late, Err(TransformRefused::Late { .. })));
}

#[test]
fn two_publishers_that_disagree_give_no_pose() {
    let nothing = pose(0.0, 0.0, 0.0, 0.0);
    // On the parent: two neighbours of the wrong one are not enough to follow it, even where it is elsewhere.
    for wrong in ["camera", "elsewhere"] {
        let mut transforms = arm();
        for tick in 0..=200 {
            let parent = if [50, 51].contains(&tick) { wrong } else { "base" };
            transforms.insert(at(10 * tick), parent, "cup", nothing, false).expect("new");
        }
        let lookup = |ms| transforms.lookup(&query("base", "cup", at(ms)));
        for ms in [10, 500, 505, 510, 1_500] {
            let error = lookup(ms).expect_err("two parents").to_string();
            let named = ["'cup' has two parents", "'base'", wrong].map(|part| error.contains(part));
            assert_eq!(named, [true; 3], "{ms}: {error}");
        }
        assert!(lookup(1_600).is_ok());
    }
    // On the pose.
    for other in [pose(0.3, 0.0, 0.0, 0.0), pose(0.0, 0.0, 0.0, 0.6)] {
        let mut transforms = Transforms::default();
        for tick in 0..=200 {
            let seen = if [50, 51].contains(&tick) { other } else { nothing };
            transforms.insert(at(10 * tick), "base", "cup", seen, false).expect("new");
        }
        let lookup = |ms| transforms.lookup(&query("base", "cup", at(ms)));
        for ms in [500, 505, 510, 1_500] {
            let error = lookup(ms).expect_err("a jump").to_string();
            assert!(error.contains("the edge 'base' -> 'cup' jumps by"), "{error}");
            assert!(error.contains("ros2 topic info -v /tf"), "{error}");
        }
        assert!(lookup(1_600).is_ok());
    }
}

#[test]
fn a_full_table_has_room_for_the_chain() {
    let mut transforms = Transforms::new(["/base", "tip"]);
    let nothing = pose(0.0, 0.0, 0.0, 0.0);
    transforms.insert_static(0, "flange", "tip", nothing).expect("fixed");
    let crowd = 2 * MAX_FRAMES as i64;
    for round in 0..4 {
        for (parent, child) in [("base", "arm"), ("arm", "flange")] {
            transforms.insert(at(100 * round), parent, child, nothing, false).expect("new");
        }
        for frame in 0..crowd {
            let name = format!("f{frame}");
            transforms.insert(at(100 * round + 50), "base", &name, nothing, false).expect("new");
            transforms.insert_static(0, "base", &format!("s{frame}"), nothing).expect("fixed");
        }
        assert!(transforms.links.len() <= MAX_FRAMES);
    }
    assert!(transforms.lookup(&query("base", "tip", at(300))).is_ok());
}

#[test]
fn a_frame_that_changes_its_parent_is_never_mixed() {
    let mut transforms = arm();
    let held = |tick: i64| if tick < 150 { "base" } else { "hand" };
    for tick in 0..=300 {
        let moved = pose(0.0, 0.0, 0.1, 0.0);
        transforms
            .insert(at(10 * tick), "base", "hand", pose(1.0, 0.0, 0.0, 0.0), false)
            .expect("new");
        transforms.insert(at(10 * tick), held(tick), "cup", moved, false).expect("new");
    }
    let x_at = |ms| transforms.lookup(&query("base", "cup", at(ms))).map(|f| f.pose.translation.x);
    assert_eq!((x_at(400), x_at(2_600)), (Ok(0.0), Ok(1.0)));
    for ms in [600, 1_490, 1_495, 1_500, 2_400] {
        assert!(matches!(x_at(ms), Err(LookupError::TwoParents { .. })), "{ms}");
    }
    // Until then known in another frame than now.
    let mut late = arm();
    late.insert(at(10), "base", "cup", pose(0.0, 0.0, 0.0, 0.0), false).expect("new");
    late.insert(at(90), "tip", "cup", pose(0.0, 0.0, 0.0, 0.0), false).expect("new");
    late.insert(at(5), "cup", "lid", pose(0.0, 0.0, 0.0, 0.0), false).expect("new");
    late.insert(at(10), "cup", "lid", pose(0.0, 0.0, 0.0, 0.0), false).expect("new");
    let error = late.lookup(&query("base", "lid", at(100))).expect_err("mixed");
    assert!(matches!(error, LookupError::TwoParents { .. }), "{error}");
}

#[test]
fn transforms_that_make_no_sense_are_refused() {
    let mut transforms = arm();
    let mut insert = |ms, parent: &str, child: &str, x| {
        transforms.insert(at(ms), parent, child, pose(x, 0.0, 0.0, 0.0), false)
    };
    assert!(matches!(insert(0, "", "x", 0.0), Err(TransformRefused::EmptyName { .. })));
    assert!(matches!(insert(0, "x", "/x", 0.0), Err(TransformRefused::OwnParent { .. })));
    assert!(matches!(insert(0, "base", "link", 7.0), Err(TransformRefused::Contradiction { .. })));
    assert_eq!(insert(0, "base", "link", 0.0), Ok(()), "repeated as it was");
    assert_eq!(insert(20_000, "base", "link", 0.0), Ok(()));
    let late = insert(0, "base", "link", 0.0);
    assert!(matches!(late, Err(TransformRefused::Late { behind_ns, .. }) if behind_ns > KEEP_NS));
    let replaced = transforms.insert(at(20_000), "base", "link", pose(3.0, 0.0, 0.0, 0.0), true);
    assert_eq!(replaced, Ok(()));
}

#[test]
fn memory_is_bounded() {
    let mut transforms = Transforms::default();
    for tick in 0..3 * MAX_POSES as i64 {
        let moved = pose(1e-6 * tick as f64, 0.0, 0.0, 0.0);
        transforms.insert(START + tick * 1_000, "base", "link", moved, false).expect("new");
    }
    assert_eq!(transforms.links["link"].len(), MAX_POSES);
    for second in 0..100 {
        let moved = pose(0.0, 0.0, 0.0, 0.0);
        transforms.insert(at(1_000 * second), "base", "slow", moved, false).expect("new");
    }
    assert_eq!(transforms.links["slow"].len(), 11);
    for frame in 0..2 * MAX_FRAMES {
        let _ = transforms.insert_static(0, "base", &format!("f{frame}"), pose(0.0, 0.0, 0.0, 0.0));
    }
    assert_eq!(transforms.links.len(), MAX_FRAMES);
}

#[test]
fn a_new_clock_keeps_what_is_fixed() {
    let mut transforms = arm();
    transforms.clear_moving();
    assert!(transforms.lookup(&query("link", "tip", 0)).is_ok());
    assert!(matches!(
        transforms.lookup(&query("base", "tip", 0)),
        Err(LookupError::NotConnected { .. })
    ));
}

#[test]
fn a_new_clock_may_fix_another_pose_at_an_earlier_stamp() {
    let mut transforms = Transforms::default();
    let fix = |transforms: &mut Transforms, stamp_ns, x| {
        transforms.insert_static(stamp_ns, "link", "tip", pose(x, 0.0, 0.0, 0.0)).expect("fixed");
        transforms.lookup(&query("link", "tip", 0)).expect("known").pose.translation.x
    };
    assert_eq!(fix(&mut transforms, 100, 1.0), 1.0);
    assert_eq!(fix(&mut transforms, 50, 2.0), 1.0, "of one clock, the later message holds");
    transforms.clear_moving();
    assert_eq!(fix(&mut transforms, 50, 3.0), 3.0);
    assert_eq!(fix(&mut transforms, 40, 4.0), 3.0);
}

#[test]
fn the_shortest_arc_is_taken() {
    let mut transforms = Transforms::default();
    let turned = |angle: f64| {
        let rotation = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), angle);
        Isometry3::from_parts(Translation3::identity(), rotation)
    };
    transforms.insert(at(0), "base", "tip", turned(3.0), false).expect("new");
    transforms.insert(at(100), "base", "tip", turned(-3.0), false).expect("new");
    let found = transforms.lookup(&query("base", "tip", at(50))).expect("between");
    assert!(found.pose.rotation.angle() > 3.1, "{}", found.pose.rotation.angle());
}

/// Stamps of a link's poses and their values.
fn messages() -> impl Strategy<Value = Vec<(usize, i64, f64)>> {
    prop::collection::btree_map((0usize..3, 0i64..200), -0.04..0.04f64, 1..60)
        .prop_map(|map| map.into_iter().map(|((link, ms), value)| (link, ms, value)).collect())
}

proptest! {
    /// Neither the order of arrival nor the sign of a quaternion changes a bit of the answer.
    #[test]
    fn order_and_sign_change_nothing(
        (messages, shuffled) in messages()
            .prop_flat_map(|messages| (Just(messages.clone()), Just(messages).prop_shuffle())),
        ms in 0i64..220,
        turned in any::<u64>(),
    ) {
        const NAMES: [&str; 4] = ["base", "upper", "lower", "tip"];
        let answer = |messages: &[(usize, i64, f64)], signs: u64| {
            let mut transforms = Transforms::default();
            for (i, (link, ms, value)) in messages.iter().enumerate() {
                let sign = if signs >> (i % 64) & 1 == 1 { -1.0 } else { 1.0 };
                let (sine, cosine) = (value / 2.0).sin_cos();
                let xyzw = [sine * 0.6, 0.0, sine * 0.8, cosine].map(|part| sign * part);
                let pose = crate::node::rigid::rigid([*value, 0.0, 1.0], xyzw).expect("normalised");
                transforms.insert(at(*ms), NAMES[*link], NAMES[link + 1], pose, false).expect("new");
            }
            let found = transforms.lookup(&query("base", "tip", at(ms)));
            found.map(|found| {
                let matrix = found.pose.to_homogeneous().map(f64::to_bits);
                (matrix, found.at_ns, found.newest_ns)
            })
        };
        prop_assert_eq!(answer(&messages, 0), answer(&shuffled, turned));
    }
}
