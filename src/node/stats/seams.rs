//! What becomes of a motion where one chunk follows another.

use super::commands::{Commands, Group, Rows};

const NS_PER_S: f64 = 1e9;

/// Which run of chunks: the id of a goal, or `None` for the timer.
pub type Run = Option<[u8; 16]>;

/// The moment at which a chunk took over from the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seam {
    pub groups: Vec<GroupSeam>,
    /// How long the last row of the old chunk had been due when the new one came; 0 if it was not.
    pub stall_ns: i64,
}

/// What one group is commanded to do there.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSeam {
    pub group: String,
    pub jump: Jump,
    /// Largest acceleration of a joint, rad/s² for joints that turn, by differences over control steps; `None` for
    /// poses, and where there are too few rows.
    pub acceleration: Option<f64>,
}

/// How far the new command for a moment is from the old one for the same moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jump {
    /// Of the joint that jumps farthest, in its unit.
    Joints {
        largest: f64,
    },
    Pose {
        metres: f64,
        radians: f64,
    },
}

/// The seams between the chunks of a run: a goal, or the timer's time without one.
#[derive(Debug, Default)]
pub struct Seams {
    last: Option<(Run, Commands)>,
    pub latest: Option<Seam>,
    /// Seams that have been measured.
    pub count: u64,
    /// Seams with a stall.
    pub stalls: u64,
    pub longest_stall_ns: i64,
}

impl Seams {
    /// The next chunk begins a motion of its own.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// A chunk for `run` comes at `now_ns`. Gives back the seam, where there is one.
    pub fn follow(&mut self, run: Run, new: Commands, now_ns: i64) -> Option<&Seam> {
        let before = self.last.take().filter(|(of, _)| *of == run);
        let seam = before.as_ref().and_then(|(_, old)| Seam::between(old, &new, now_ns));
        if seam.is_none()
            && let Some((run, old)) = before
        {
            // All of the new chunk is in the past, so that nothing follows it.
            self.last = Some((run, old));
            return None;
        }
        self.last = Some((run, new));
        let seam = seam?;
        self.count += 1;
        self.stalls += u64::from(seam.stall_ns > 0);
        self.longest_stall_ns = self.longest_stall_ns.max(seam.stall_ns);
        self.latest = Some(seam);
        self.latest.as_ref()
    }
}

impl Seam {
    /// `None` if the new chunk has no row that is still to come.
    fn between(old: &Commands, new: &Commands, now_ns: i64) -> Option<Self> {
        let from_ns = now_ns.max(new.first_ns());
        let first_row = new.row_from(from_ns)?;
        let known = |group: &Group| old.groups.iter().find(|before| before.name == group.name);
        let groups = new.groups.iter().filter_map(|group| {
            let before = known(group)?;
            let (jump, acceleration) = match (&before.rows, &group.rows) {
                (Rows::Joints(was), Rows::Joints(is)) => {
                    let pairs =
                        old.joints_at(was, from_ns).into_iter().zip(new.joints_at(is, from_ns));
                    let largest = pairs.map(|(was, is)| (is - was).abs()).fold(0.0, f64::max);
                    let acceleration = acceleration((old, was), (new, is), first_row);
                    (Jump::Joints { largest }, acceleration)
                }
                (Rows::Poses(was), Rows::Poses(is)) => {
                    let (was, is) = (old.pose_at(was, from_ns), new.pose_at(is, from_ns));
                    let (metres, radians) = was.distance(&is);
                    (Jump::Pose { metres, radians }, None)
                }
                _ => return None,
            };
            Some(GroupSeam { group: group.name.clone(), jump, acceleration })
        });
        let stall_ns = now_ns.saturating_sub(old.last_ns()).max(0);
        Some(Self { groups: groups.collect(), stall_ns })
    }
}

/// The commands two and one control steps before the first row of the new chunk are the old chunk's; that row and the
/// next are its own. The largest second difference of these four counts.
fn acceleration(
    (old, was): (&Commands, &[Vec<f64>]),
    (new, is): (&Commands, &[Vec<f64>]),
    first_row: i64,
) -> Option<f64> {
    let dt_ns = new.dt_ns();
    let dt = dt_ns as f64 / NS_PER_S;
    let first_ns = new.due_ns(first_row);
    let mut stream = Vec::with_capacity(4);
    for steps in [2, 1] {
        let at_ns = first_ns.saturating_sub(steps * dt_ns);
        // Before its first row, nothing is known of what was commanded.
        if at_ns >= old.first_ns() {
            stream.push(old.joints_at(was, at_ns));
        }
    }
    let rows = is.iter().skip(usize::try_from(first_row).ok()?);
    stream.extend(rows.take(2).cloned());
    let difference = |three: &[Vec<f64>]| {
        let joints = three[0].iter().zip(&three[1]).zip(&three[2]);
        joints.map(|((a, b), c)| ((a - 2.0 * b + c) / (dt * dt)).abs()).fold(0.0, f64::max)
    };
    stream.windows(3).map(difference).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::PoseSettings;
    use super::super::super::trajectory::ActionJoints;
    use super::*;
    use crate::contract::{
        ActionChunk, ActionGroup, PoseFormat, Representation, StageTimings, Version,
    };

    const MS: i64 = 1_000_000;
    const DT: i64 = 50 * MS;

    fn chunk(stamp_ns: i64, joints: &[[f32; 2]], poses: &[[f32; 6]]) -> Commands {
        let group = |name: &str, representation, dim, values: Vec<f32>| ActionGroup {
            name: name.to_owned(),
            representation,
            dim,
            values,
        };
        let chunk = ActionChunk {
            version: Version::N16,
            embodiment: "gr1".to_owned(),
            instruction: "wave".to_owned(),
            seed: None,
            stamp_ns,
            horizon: joints.len(),
            groups: vec![
                group("arm", Representation::Absolute, 2, joints.concat()),
                group("step", Representation::Delta, 2, joints.concat()),
                group("eef", Representation::PoseRotvec, 6, poses.concat()),
            ],
            normalized: vec![],
            timings: StageTimings::default(),
        };
        let named = |group: &str| ActionJoints {
            group: group.to_owned(),
            joints: vec!["a".to_owned(), "b".to_owned()],
            map: None,
        };
        let pose = PoseSettings {
            group: "eef".to_owned(),
            format: PoseFormat::Rotvec,
            frame: String::new(),
            topic: String::new(),
        };
        Commands::new(&chunk, &[named("arm"), named("step")], &[pose], DT).expect("rows")
    }

    /// Joint `a` moves 0.1 rad a row from `start`, joint `b` rests.
    fn ramp(stamp_ns: i64, start: f32) -> Commands {
        let joints: Vec<_> = (0..4).map(|row| [start + 0.1 * row as f32, 1.0]).collect();
        let poses: Vec<_> =
            (0..4).map(|row| [row as f32, 0.0, 0.0, 0.0, 0.0, 0.2 * start]).collect();
        chunk(stamp_ns, &joints, &poses)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    #[test]
    fn case_46_a_motion_that_goes_on_has_no_jump_and_no_acceleration() {
        let mut seams = Seams::default();
        assert_eq!(seams.follow(None, ramp(0, 0.0), 10 * MS), None);
        // 75 ms later, the same motion; it takes over in the middle of a step.
        let seam = seams.follow(None, ramp(75 * MS, 0.15), 130 * MS).expect("a seam").clone();
        assert_eq!(seam.stall_ns, 0);
        let [arm, eef] = &seam.groups[..] else { panic!("{seam:?}") };
        assert_eq!((arm.group.as_str(), eef.group.as_str()), ("arm", "eef"));
        let Jump::Joints { largest } = arm.jump else { panic!("{arm:?}") };
        assert!(near(largest, 0.0), "{largest}");
        let acceleration = arm.acceleration.expect("enough rows");
        assert!(acceleration.abs() < 1e-3, "{acceleration}");
        // 1.6 m after 130 ms on the old way, 0.1 m on the new; turned by 0.03 rad.
        let Jump::Pose { metres, radians } = eef.jump else { panic!("{eef:?}") };
        assert!(near(metres, 1.5) && near(radians, 0.03), "{metres} {radians}");
        assert_eq!((seams.count, seams.stalls), (1, 0));
    }

    #[test]
    fn case_46_a_jump_is_measured_at_the_moment_of_the_change() {
        let mut seams = Seams::default();
        seams.follow(None, ramp(0, 0.0), 10 * MS);
        let seam = seams.follow(None, ramp(100 * MS, 0.7), 110 * MS).expect("a seam");
        // The first row of the new chunk is due at 150 ms, when the old one is at 0.2.
        let Jump::Joints { largest } = seam.groups[0].jump else { panic!("{seam:?}") };
        assert!(near(largest, 0.5), "{largest}");
        // 0.0, 0.1 | 0.7, 0.8: differences 0.1, 0.6, 0.1 over steps of 50 ms.
        let acceleration = seam.groups[0].acceleration.expect("enough rows");
        assert!((acceleration - 0.5 / 0.0025).abs() < 0.01, "{acceleration}");
    }

    #[test]
    fn case_46_a_chunk_that_comes_too_late_is_a_stall() {
        let mut seams = Seams::default();
        seams.follow(None, ramp(0, 0.0), 10 * MS);
        let seam = seams.follow(None, ramp(180 * MS, 0.3), 260 * MS).expect("a seam");
        assert_eq!(seam.stall_ns, 60 * MS);
        assert_eq!((seams.stalls, seams.longest_stall_ns), (1, 60 * MS));
    }

    #[test]
    fn chunks_of_two_runs_have_no_seam() {
        let mut seams = Seams::default();
        seams.follow(None, ramp(0, 0.0), 10 * MS);
        assert_eq!(seams.follow(Some([1; 16]), ramp(50 * MS, 0.1), 60 * MS), None);
        assert!(seams.follow(Some([1; 16]), ramp(100 * MS, 0.2), 110 * MS).is_some());
        seams.interrupt();
        assert_eq!(seams.follow(Some([1; 16]), ramp(150 * MS, 0.3), 160 * MS), None);
        assert_eq!(seams.count, 1);
    }

    #[test]
    fn a_chunk_that_is_all_in_the_past_does_not_take_over() {
        let mut seams = Seams::default();
        seams.follow(None, ramp(1000 * MS, 0.0), 1010 * MS);
        assert_eq!(seams.follow(None, ramp(700 * MS, 9.0), 1020 * MS), None);
        let seam = seams.follow(None, ramp(1050 * MS, 0.1), 1060 * MS).expect("a seam");
        let Jump::Joints { largest } = seam.groups[0].jump else { panic!("{seam:?}") };
        assert!(near(largest, 0.0), "{largest}");
    }
}
