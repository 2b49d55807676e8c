//! `sensor_msgs/msg/JointState` to state groups, by joint name and never by position.

use std::collections::{BTreeMap, HashMap};

use super::super::nearest::{hint, nearest};

/// Names that an error lists at most.
const SHOWN_NAMES: usize = 12;

/// Which joints make up the state groups that one topic feeds.
#[derive(Clone, Debug)]
pub struct JointMap {
    /// Group names and their joints, in the checkpoint's order.
    groups: Vec<(String, Vec<String>)>,
    /// Joint name to its place among the joints of all groups together.
    places: HashMap<String, usize>,
}

/// Why joint names cannot be mapped to groups.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JointMapError {
    #[error(
        "joint '{joint}' is named twice, in group '{first}' and in group '{second}'; a joint has one place"
    )]
    Duplicate { joint: String, first: String, second: String },
    #[error("group '{group}' has an empty joint name")]
    Empty { group: String },
}

/// Why a message is not a sample of the groups.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JointError {
    #[error("{names} names, but {positions} positions; every joint needs its position")]
    Positions { names: usize, positions: usize },
    #[error(
        "{names} names, but {values} values in `{field}`; it has to be empty or as long as `name`"
    )]
    Length { field: &'static str, names: usize, values: usize },
    #[error("joint '{joint}' (group '{group}') is missing{}; the message has: {}", hint(.nearest), list(.seen))]
    Missing { joint: String, group: String, nearest: Option<String>, seen: Vec<String> },
    #[error("joint '{joint}' is in the message twice")]
    Twice { joint: String },
    #[error("position of joint '{joint}' is {value}, not a finite number")]
    NotFinite { joint: String, value: f64 },
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "no joints".to_owned(),
        n if n > SHOWN_NAMES => format!("{shown} and {} more", n - SHOWN_NAMES),
        _ => shown,
    }
}

impl JointMap {
    /// Maps each group to its joints, given in the checkpoint's order.
    ///
    /// # Errors
    /// A name that is empty or stands twice.
    pub fn new(groups: Vec<(String, Vec<String>)>) -> Result<Self, JointMapError> {
        let mut owners: HashMap<&str, &str> = HashMap::new();
        let mut places = HashMap::new();
        for (group, joints) in &groups {
            for joint in joints {
                if joint.is_empty() {
                    return Err(JointMapError::Empty { group: group.clone() });
                }
                if let Some(first) = owners.insert(joint, group) {
                    let (joint, first, second) = (joint.clone(), first.to_owned(), group.clone());
                    return Err(JointMapError::Duplicate { joint, first, second });
                }
                places.insert(joint.clone(), places.len());
            }
        }
        Ok(Self { groups, places })
    }

    /// Group names in order.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|(name, _)| name.as_str())
    }

    /// The joints of a group, in the checkpoint's order.
    pub fn joints(&self, group: &str) -> &[String] {
        let found = self.groups.iter().find(|(name, _)| name == group);
        found.map_or(&[], |(_, joints)| joints)
    }

    /// The positions of each group's joints, in the group's order.
    ///
    /// The message may have its joints in any order and have others besides; those are not looked at. Velocities and
    /// efforts are not used, only their number is checked.
    ///
    /// # Errors
    /// See [`JointError`]. A sample that lacks one joint is refused as a whole.
    pub fn read(
        &self,
        names: &[String],
        positions: &[f64],
        velocities: usize,
        efforts: usize,
    ) -> Result<BTreeMap<String, Vec<f64>>, JointError> {
        if positions.len() != names.len() {
            return Err(JointError::Positions { names: names.len(), positions: positions.len() });
        }
        for (field, values) in [("velocity", velocities), ("effort", efforts)] {
            if values != 0 && values != names.len() {
                return Err(JointError::Length { field, names: names.len(), values });
            }
        }
        let mut found: Vec<Option<f64>> = vec![None; self.places.len()];
        for (name, &value) in names.iter().zip(positions) {
            let Some(&place) = self.places.get(name.as_str()) else {
                continue;
            };
            if !value.is_finite() {
                return Err(JointError::NotFinite { joint: name.clone(), value });
            }
            if found[place].replace(value).is_some() {
                return Err(JointError::Twice { joint: name.clone() });
            }
        }
        let mut found = found.into_iter();
        let mut state = BTreeMap::new();
        for (group, joints) in &self.groups {
            let mut values = Vec::with_capacity(joints.len());
            for (joint, value) in joints.iter().zip(found.by_ref()) {
                values.push(value.ok_or_else(|| self.missing(group, joint, names))?);
            }
            state.insert(group.clone(), values);
        }
        Ok(state)
    }

    fn missing(&self, group: &str, joint: &str, names: &[String]) -> JointError {
        // A name that has its own place is not a misspelling of another.
        let free = names.iter().map(String::as_str).filter(|name| !self.places.contains_key(*name));
        JointError::Missing {
            joint: joint.to_owned(),
            group: group.to_owned(),
            nearest: nearest(joint, free).map(str::to_owned),
            seen: names.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARM: [&str; 7] = [
        "left_shoulder_pitch",
        "left_shoulder_roll",
        "left_shoulder_yaw",
        "left_elbow",
        "left_wrist_yaw",
        "left_wrist_roll",
        "left_wrist_pitch",
    ];

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn map() -> JointMap {
        let groups = vec![
            ("left_arm".to_owned(), owned(&ARM)),
            ("waist".to_owned(), owned(&["yaw", "pitch"])),
        ];
        JointMap::new(groups).expect("valid")
    }

    /// Names and positions of every mapped joint, all values different.
    fn sample() -> Vec<(String, f64)> {
        let names = owned(&ARM).into_iter().chain(owned(&["yaw", "pitch"]));
        names.enumerate().map(|(i, name)| (name, 0.125 * i as f64 - 0.5)).collect()
    }

    fn read(sample: &[(String, f64)]) -> Result<BTreeMap<String, Vec<f64>>, JointError> {
        let (names, positions): (Vec<_>, Vec<_>) = sample.iter().cloned().unzip();
        map().read(&names, &positions, 0, 0)
    }

    #[test]
    fn case_03_a_missing_joint_refuses_the_sample() {
        let without: Vec<_> =
            sample().into_iter().filter(|(name, _)| name != "left_wrist_roll").collect();
        let error = read(&without).expect_err("one joint short");
        assert!(
            matches!(&error, JointError::Missing { joint, .. } if joint == "left_wrist_roll"),
            "{error}"
        );
    }

    #[test]
    fn case_04_prefixed_names_are_refused_with_the_nearest() {
        let prefixed: Vec<_> =
            sample().into_iter().map(|(name, v)| (format!("robot1/{name}"), v)).collect();
        let text = read(&prefixed).expect_err("wrong names").to_string();
        assert!(text.contains("'left_shoulder_pitch'"), "{text}");
        assert!(text.contains("did you mean 'robot1/left_shoulder_pitch'?"), "{text}");
        assert!(read(&[]).expect_err("no names").to_string().contains("no joints"));
    }

    #[test]
    fn case_13_values_follow_the_names() {
        let mut reversed = sample();
        reversed.reverse();
        let state = read(&reversed).expect("complete");
        let expected: Vec<f64> = (0..7).map(|i| 0.125 * i as f64 - 0.5).collect();
        assert_eq!(state["left_arm"], expected);
        assert_eq!(state["waist"], [0.375, 0.5]);
    }

    #[test]
    fn case_31_arrays_are_empty_or_whole() {
        let (names, positions): (Vec<_>, Vec<_>) = sample().into_iter().unzip();
        for (velocities, efforts, accepted) in
            [(0, 0, true), (9, 9, true), (0, 9, true), (0, 1, false), (8, 0, false)]
        {
            assert_eq!(map().read(&names, &positions, velocities, efforts).is_ok(), accepted);
        }
        for length in [0, 8] {
            let error =
                map().read(&names, &positions[..length], 0, 0).expect_err("short positions");
            assert_eq!(error, JointError::Positions { names: 9, positions: length });
        }
    }

    #[test]
    fn duplicates_and_values_that_are_not_finite_are_refused() {
        let mut twice = sample();
        twice.push(("left_elbow".to_owned(), 0.0));
        assert_eq!(read(&twice), Err(JointError::Twice { joint: "left_elbow".to_owned() }));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut sample = sample();
            sample[3].1 = bad;
            assert!(
                matches!(read(&sample), Err(JointError::NotFinite { joint, .. }) if joint == "left_elbow")
            );
        }
        let mut extra = sample();
        extra.push(("a_passive_wheel".to_owned(), f64::NAN));
        assert!(read(&extra).is_ok());
    }

    #[test]
    fn a_joint_has_one_place() {
        let groups = vec![("a".to_owned(), owned(&["x", "y"])), ("b".to_owned(), owned(&["y"]))];
        let error = JointMap::new(groups).expect_err("y stands twice");
        let expected = ("y".to_owned(), "a".to_owned(), "b".to_owned());
        assert!(
            matches!(error, JointMapError::Duplicate { joint, first, second } if (&joint, &first, &second)
                == (&expected.0, &expected.1, &expected.2))
        );
        assert!(JointMap::new(vec![("a".to_owned(), owned(&[""]))]).is_err());
    }

    #[test]
    fn long_messages_are_shortened_in_errors() {
        let many: Vec<_> = (0..40).map(|i| (format!("j{i}"), 0.0)).collect();
        assert!(read(&many).expect_err("other joints").to_string().ends_with("j11 and 28 more"));
    }

    proptest! {
        #[test]
        fn order_and_extra_joints_change_nothing(
            mut shuffled in Just([sample(), vec![("neck".to_owned(), 1.0), ("tail".to_owned(), 2.0)]].concat())
                .prop_shuffle(),
            extra in 0usize..3,
        ) {
            let extras = ["neck", "tail"];
            shuffled.retain(|(name, _)| !extras[..extra.min(2)].contains(&name.as_str()));
            prop_assert_eq!(read(&shuffled), read(&sample()));
        }

        #[test]
        fn never_panics(
            names in proptest::collection::vec(".{0,6}|left_elbow|yaw", 0..12),
            positions in proptest::collection::vec(any::<f64>(), 0..12),
            velocities in 0usize..12,
            efforts in 0usize..12,
        ) {
            let _ = map().read(&names, &positions, velocities, efforts);
        }
    }
}
