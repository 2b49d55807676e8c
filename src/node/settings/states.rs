//! The parameters `state.<key>.*`: where each state group comes from.

use super::super::params::{ParamError, Params};
use super::super::state::StateReader;
use super::super::state::affine::{self, AffineMap};
use super::super::state::columns::ColumnMap;
use super::super::state::joints::{JointMap, JointMapError};
use super::super::state::pose::PoseLayout;
use super::unusable;
use crate::contract::{Embodiment, RotationFormat, StateEncoding, StateGroupSpec};

/// How one topic of states is read.
#[derive(Clone, Debug)]
pub struct StateSettings {
    pub topic: String,
    pub reader: StateReader,
}

/// A state group that is the pose of one frame in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformSettings {
    pub group: String,
    pub base_frame: String,
    pub tip_frame: String,
    pub layout: PoseLayout,
}

/// Where all state groups come from.
#[derive(Default)]
pub(super) struct Sources {
    /// One entry per topic and type.
    pub states: Vec<StateSettings>,
    pub transforms: Vec<TransformSettings>,
}

/// Parameters that only some sources have, by the source's name.
const USED: [(&str, &[&str]); 5] = [
    ("joints", &["topic", "joints", "source_range", "model_range"]),
    ("pose", &["topic", "base_frame", "format"]),
    ("tf", &["base_frame", "tip_frame", "format"]),
    ("float64", &["topic", "source_range", "model_range"]),
    ("columns", &["topic", "columns", "layout", "source_range", "model_range"]),
];

/// Groups of one topic of joint states: name, joints, map.
type JointGroups = Vec<(String, Vec<String>, Option<AffineMap>)>;

/// The sources, in the order of the first group that each feeds.
pub(super) fn sources(
    params: &Params,
    embodiment: &Embodiment,
    errors: &mut Vec<ParamError>,
) -> Sources {
    let mut sources = Sources::default();
    let mut joint_topics: Vec<(String, JointGroups)> = Vec::new();
    for spec in &embodiment.state {
        let mut group = Group { params, embodiment, spec, errors };
        let source = group.text("source");
        group.refuse_what_is_not_used(source);
        match source {
            "pose" => sources.states.extend(group.pose()),
            "tf" => sources.transforms.extend(group.transform()),
            "float64" => sources.states.extend(group.float64()),
            "columns" => sources.states.extend(group.columns()),
            _ => {
                let (topic, joints) = group.joints();
                match joint_topics.iter_mut().find(|(other, _)| *other == topic) {
                    Some((_, groups)) => groups.push(joints),
                    None => joint_topics.push((topic, vec![joints])),
                }
            }
        }
    }
    let joints = joint_topics.into_iter().filter_map(|topic| joint_states(topic, errors));
    let joints: Vec<StateSettings> = joints.collect();
    sources.states.splice(0..0, joints);
    sources
}

fn joint_states(
    (topic, groups): (String, JointGroups),
    errors: &mut Vec<ParamError>,
) -> Option<StateSettings> {
    let maps = groups.iter().map(|(_, _, map)| *map).collect();
    let names = groups.into_iter().map(|(group, joints, _)| (group, joints)).collect();
    match JointMap::new(names) {
        Ok(joints) => Some(StateSettings { topic, reader: StateReader::Joints { joints, maps } }),
        Err(error) => {
            let (JointMapError::Duplicate { second: group, .. } | JointMapError::Empty { group }) =
                &error;
            let name = format!("state.{group}.joints");
            errors.push(unusable(name, format!("cannot be used: {error}")));
            None
        }
    }
}

/// One state group and its parameters.
struct Group<'a> {
    params: &'a Params,
    embodiment: &'a Embodiment,
    spec: &'a StateGroupSpec,
    errors: &'a mut Vec<ParamError>,
}

impl<'a> Group<'a> {
    fn name(&self, what: &str) -> String {
        format!("state.{}.{what}", self.spec.name)
    }

    fn text(&self, what: &str) -> &'a str {
        self.params.text(&self.name(what))
    }

    fn refuse(&mut self, what: &str, reason: impl Into<String>) {
        self.errors.push(unusable(self.name(what), reason));
    }

    /// A parameter that is given but changes nothing is a misunderstanding.
    fn refuse_what_is_not_used(&mut self, source: &str) {
        let used = USED.into_iter().find(|(name, _)| *name == source);
        let used = used.map_or(&[][..], |(_, used)| used);
        let mut all: Vec<&str> = USED.iter().flat_map(|(_, used)| *used).copied().collect();
        all.sort_unstable();
        all.dedup();
        for what in all.into_iter().filter(|what| !used.contains(what)) {
            let Some((declared, value)) = self.params.get(&self.name(what)) else { continue };
            if *value != declared.entry.default.value(&declared.key) {
                let reason = format!(
                    "is given, but source '{source}' does not use it; leave it out, or set {} to another source",
                    self.name("source")
                );
                self.refuse(what, reason);
            }
        }
    }

    /// The names of a list parameter, one per value of the group.
    fn names(&mut self, what: &str, of: &str) -> Vec<String> {
        let names = self.params.texts(&self.name(what)).to_vec();
        if names.len() != self.spec.dim {
            let has = if names.is_empty() {
                "is not given".to_owned()
            } else {
                format!("has {} names", names.len())
            };
            let reason = format!(
                "{has}; group '{}' of '{}' needs {} {of} names in the checkpoint's order",
                self.spec.name, self.embodiment.tag, self.spec.dim
            );
            self.refuse(what, reason);
        }
        names
    }

    fn map(&mut self) -> Option<AffineMap> {
        range(self.params, [self.name("source_range"), self.name("model_range")], self.errors)
    }

    fn own_topic(&mut self) -> String {
        let topic = self.text("topic");
        if topic.is_empty() {
            self.refuse(
                "topic",
                format!("is empty; source '{}' needs its topic", self.text("source")),
            );
        }
        topic.to_owned()
    }

    fn joints(&mut self) -> (String, (String, Vec<String>, Option<AffineMap>)) {
        let joints = self.names("joints", "joint");
        let own = self.text("topic");
        let topic = if own.is_empty() { self.params.text("joint_states_topic") } else { own };
        if topic.is_empty() {
            self.errors.push(unusable("joint_states_topic".to_owned(), "is empty"));
        }
        (topic.to_owned(), (self.spec.name.clone(), joints, self.map()))
    }

    fn pose(&mut self) -> Option<StateSettings> {
        let topic = self.own_topic();
        let base_frame = Some(self.text("base_frame")).filter(|frame| !frame.is_empty());
        let reader = StateReader::Pose {
            group: self.spec.name.clone(),
            layout: self.layout()?,
            base_frame: base_frame.map(str::to_owned),
        };
        Some(StateSettings { topic, reader })
    }

    fn transform(&mut self) -> Option<TransformSettings> {
        let frames = ["base_frame", "tip_frame"].map(|what| self.text(what));
        for (what, frame) in ["base_frame", "tip_frame"].into_iter().zip(frames) {
            if frame.is_empty() {
                self.refuse(what, "is empty; source 'tf' needs the names of both frames");
            }
        }
        let [base_frame, tip_frame] = frames.map(str::to_owned);
        if base_frame == tip_frame && !base_frame.is_empty() {
            self.refuse("tip_frame", format!("is '{tip_frame}', as base_frame is"));
        }
        let layout = self.layout()?;
        Some(TransformSettings { group: self.spec.name.clone(), base_frame, tip_frame, layout })
    }

    fn float64(&mut self) -> Option<StateSettings> {
        let topic = self.own_topic();
        if self.spec.dim != 1 {
            let reason = format!(
                "is float64, one value; group '{}' of '{}' has {}",
                self.spec.name, self.embodiment.tag, self.spec.dim
            );
            self.refuse("source", reason);
            return None;
        }
        let reader = StateReader::Float64 { group: self.spec.name.clone(), map: self.map() };
        Some(StateSettings { topic, reader })
    }

    fn columns(&mut self) -> Option<StateSettings> {
        let topic = self.own_topic();
        let columns = self.names("columns", "column");
        let layout = self.params.texts(&self.name("layout")).to_vec();
        let map = self.map();
        match ColumnMap::new(columns, layout) {
            Ok(columns) => {
                let reader = StateReader::Columns { group: self.spec.name.clone(), columns, map };
                Some(StateSettings { topic, reader })
            }
            Err(error) => {
                self.refuse("columns", format!("cannot be used: {error}"));
                None
            }
        }
    }

    /// How the group writes a pose: what the checkpoint says, or else the parameter.
    fn layout(&mut self) -> Option<PoseLayout> {
        if let StateEncoding::Double { rotation: Some(RotationFormat::Euler(_)), .. } =
            self.spec.encoding
        {
            let reason = format!(
                "is {}, but group '{}' of '{}' is Euler angles, and nothing says whether those of the data set turn about \
                 fixed or about turning axes; publish them as in the data set, with source columns",
                self.text("source"),
                self.spec.name,
                self.embodiment.tag
            );
            self.refuse("source", reason);
            return None;
        }
        let declared = PoseLayout::declared(self.embodiment, &self.spec.name);
        let given: Option<PoseLayout> = self.text("format").parse().ok();
        let layout = match (declared, given) {
            (Some(declared), Some(given)) if declared != given => {
                self.refuse("format", format!("is {given}, but the checkpoint says {declared}"));
                return None;
            }
            (None, None) => {
                let reason = format!(
                    "has to be given: the checkpoint does not say how group '{}' writes a pose",
                    self.spec.name
                );
                self.refuse("format", reason);
                return None;
            }
            (declared, given) => declared.or(given)?,
        };
        if layout.dim() != self.spec.dim {
            let reason = format!(
                "is {layout}, {} values; group '{}' of '{}' has {}",
                layout.dim(),
                self.spec.name,
                self.embodiment.tag,
                self.spec.dim
            );
            self.refuse("format", reason);
            return None;
        }
        Some(layout)
    }
}

/// The map between two range parameters; `None` if neither is given, or one cannot be used.
pub(super) fn range(
    params: &Params,
    names: [String; 2],
    errors: &mut Vec<ParamError>,
) -> Option<AffineMap> {
    let given = [params.doubles(&names[0]), params.doubles(&names[1])];
    if given.iter().all(|range| range.is_empty()) {
        return None;
    }
    let mut ends = [None, None];
    for (place, (name, range)) in names.into_iter().zip(given).enumerate() {
        match affine::ends(range) {
            Ok(found) => ends[place] = Some(found),
            Err(error) => errors.push(unusable(name, error.to_string())),
        }
    }
    match ends {
        [Some(from), Some(to)] => Some(AffineMap::new(from, to)),
        _ => None,
    }
}
