//! `contract`: what a checkpoint expects and answers, robot by robot.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::contract::{
    ActionGroupSpec, ActionReference, Embodiment, Letterbox, Representation, StateGroupSpec,
    Version,
};
use crate::decode;
use crate::encode::{EncodeError, FrameShapes, rounded_down, rounded_up};
use crate::node::state::pose::PoseLayout;
use crate::policy::{PolicyOptions, open_snapshot};

/// Print what a checkpoint serves: robots with their cameras, state and action groups.
///
/// For every robot that is served: cameras and the shapes of their frames, state and action groups and how they are
/// encoded; for the others, why they are not served. Weights are not loaded.
#[derive(Debug, Args)]
pub struct ContractArgs {
    /// Snapshot directory of the checkpoint; default: the released one of --version in the hub cache.
    #[arg(long, required_unless_present = "version")]
    snapshot: Option<PathBuf>,
    /// Version that the checkpoint has to be of: n15, n16 or n17; any if it is left out.
    #[arg(long)]
    version: Option<Version>,
    /// Only this robot.
    #[arg(long)]
    embodiment: Option<String>,
    /// What this data config makes of every robot, N1.5 only; default: each robot's own, or the only one that fits.
    #[arg(long)]
    data_config: Option<String>,
    /// Whether frames are padded to squares, N1.7 only: auto (as the checkpoint declares), on or off. Decides which frames
    /// are accepted.
    #[arg(long, default_value_t)]
    letterbox: Letterbox,
    /// JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// What a checkpoint serves.
#[derive(Serialize)]
struct Report {
    version: &'static str,
    snapshot: PathBuf,
    embodiments: Vec<Robot>,
}

/// One robot. All but the first three fields are null or empty for one that is not served.
#[derive(Serialize)]
struct Robot {
    tag: String,
    served: bool,
    /// Why it is not served.
    reason: Option<String>,
    /// Row of the per-embodiment weight tables.
    slot: Option<usize>,
    language_key: Option<String>,
    /// Camera keys in the order in which the model sees them.
    cameras: Vec<String>,
    /// Least and largest ratio of width to height that all cameras accept; empty where any is accepted, null where the
    /// checkpoint leaves that to the letterbox.
    aspect_ratios: Option<Vec<f64>>,
    /// Frame times in control steps relative to now.
    frame_deltas: Vec<i32>,
    state: Vec<StateGroup>,
    action: Vec<ActionGroup>,
    /// Rows of a chunk.
    horizon: Option<usize>,
}

#[derive(Serialize)]
struct StateGroup {
    name: String,
    dim: usize,
    encoding: &'static str,
    /// How the values write a pose, where the checkpoint says it: the names of the node's parameter `format`.
    pose: Option<String>,
}

#[derive(Serialize)]
struct ActionGroup {
    name: String,
    dim: usize,
    representation: Representation,
    /// State group onto which the model's output is composed.
    relative_to: Option<String>,
    normalization: &'static str,
}

pub fn run(args: &ContractArgs) -> anyhow::Result<()> {
    let snapshot = open_snapshot(&PolicyOptions {
        snapshot: args.snapshot.clone().unwrap_or_default(),
        version: args.version,
        letterbox: args.letterbox,
        ..PolicyOptions::default()
    })?;
    let served = |embodiment: &Embodiment| {
        let shapes = FrameShapes::new(snapshot.network(), embodiment, args.letterbox);
        Ok::<_, EncodeError>(served(embodiment, aspect_ratios(shapes)?))
    };
    let embodiments: Result<Vec<Robot>, EncodeError> = match (&args.embodiment, &args.data_config) {
        (Some(tag), None) => [snapshot.embodiment(tag)?].into_iter().map(served).collect(),
        (Some(tag), Some(data_config)) => {
            [snapshot.embodiment_with(tag, data_config)?].into_iter().map(served).collect()
        }
        (None, None) => {
            snapshot.embodiments().map(|(tag, found)| robot(tag, found, served)).collect()
        }
        (None, Some(data_config)) => {
            let made = snapshot.embodiments_with(data_config)?;
            made.map(|(tag, found)| robot(tag, found, served)).collect()
        }
    };
    let report = Report {
        version: snapshot.version().name(),
        snapshot: snapshot.dir().to_owned(),
        embodiments: embodiments?,
    };
    let text =
        if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.text() };
    super::print(&text)
}

/// The ratios that are accepted; `None` where the checkpoint leaves it to the letterbox.
fn aspect_ratios(
    shapes: Result<FrameShapes, EncodeError>,
) -> Result<Option<Vec<f64>>, EncodeError> {
    match shapes {
        Ok(shapes) => Ok(Some(shapes.aspect_ratios().map(Vec::from).unwrap_or_default())),
        Err(EncodeError::LetterboxOpen) => Ok(None),
        Err(error) => Err(error),
    }
}

fn robot(
    tag: &str,
    found: Result<&Embodiment, impl std::fmt::Display>,
    served: impl Fn(&Embodiment) -> Result<Robot, EncodeError>,
) -> Result<Robot, EncodeError> {
    match found {
        Ok(embodiment) => served(embodiment),
        Err(problem) => Ok(Robot {
            tag: tag.to_owned(),
            served: false,
            reason: Some(problem.to_string()),
            slot: None,
            language_key: None,
            cameras: vec![],
            aspect_ratios: Some(vec![]),
            frame_deltas: vec![],
            state: vec![],
            action: vec![],
            horizon: None,
        }),
    }
}

fn served(embodiment: &Embodiment, aspect_ratios: Option<Vec<f64>>) -> Robot {
    let state = |group: &StateGroupSpec| StateGroup {
        name: group.name.clone(),
        dim: group.dim,
        encoding: group.encoding.name(),
        pose: PoseLayout::declared(embodiment, &group.name).map(|layout| layout.to_string()),
    };
    Robot {
        tag: embodiment.tag.clone(),
        served: true,
        reason: None,
        slot: Some(embodiment.slot),
        language_key: Some(embodiment.language_key.clone()),
        cameras: embodiment.cameras.clone(),
        aspect_ratios,
        frame_deltas: embodiment.frame_deltas.clone(),
        state: embodiment.state.iter().map(state).collect(),
        action: embodiment.action.iter().map(action).collect(),
        horizon: Some(embodiment.horizon),
    }
}

fn action(group: &ActionGroupSpec) -> ActionGroup {
    let relative_to = match &group.reference {
        ActionReference::RelativeJoint { state_group }
        | ActionReference::RelativePose { state_group, .. } => Some(state_group.clone()),
        ActionReference::Absolute | ActionReference::Delta => None,
    };
    ActionGroup {
        name: group.name.clone(),
        dim: group.dim,
        representation: decode::representation(group),
        relative_to,
        normalization: group.normalization.name(),
    }
}

impl Report {
    fn text(&self) -> String {
        let served = || self.embodiments.iter().filter(|robot| robot.served);
        let mut text = format!(
            "{} checkpoint in {}: {} of {} embodiments are served\n",
            self.version,
            self.snapshot.display(),
            served().count(),
            self.embodiments.len()
        );
        for robot in served() {
            robot.write(&mut text);
        }
        let refused =
            self.embodiments.iter().filter_map(|robot| Some((robot, robot.reason.as_ref()?)));
        for (place, (robot, reason)) in refused.enumerate() {
            if place == 0 {
                text.push_str("\nnot served\n");
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {}: {reason}", robot.tag);
        }
        text
    }
}

impl Robot {
    fn write(&self, text: &mut String) {
        let number = |value: Option<usize>| value.map_or_else(String::new, |n| n.to_string());
        let deltas: Vec<String> = self.frame_deltas.iter().map(i32::to_string).collect();
        let _ = writeln!(
            text,
            "\n{}   slot {}, {} steps per chunk",
            self.tag,
            number(self.slot),
            number(self.horizon)
        );
        let _ = writeln!(text, "  cameras, frames of control steps {}", deltas.join(", "));
        for camera in &self.cameras {
            let _ = writeln!(text, "    {camera}");
        }
        match self.aspect_ratios.as_deref() {
            Some([least, largest]) => {
                let _ = writeln!(
                    text,
                    "    width divided by height from {:.3} to {:.3}",
                    rounded_up(*least),
                    rounded_down(*largest)
                );
            }
            None => {
                let _ = writeln!(
                    text,
                    "    whether frames are padded to squares is left open; see --letterbox"
                );
            }
            Some(_) => {}
        }
        let language_key = self.language_key.as_deref().unwrap_or_default();
        let _ = writeln!(text, "  instruction\n    {language_key}");
        let state = self.state.iter().map(|group| {
            let pose = group.pose.clone().unwrap_or_default();
            [group.name.clone(), group.dim.to_string(), group.encoding.to_owned(), pose]
        });
        columns(text, ["state", "values", "encoding", "pose"], state.collect());
        let action = self.action.iter().map(|group| {
            let meaning = match &group.relative_to {
                Some(state) => format!("{}, from {state}", meaning(group.representation)),
                None => meaning(group.representation).to_owned(),
            };
            [group.name.clone(), group.dim.to_string(), group.normalization.to_owned(), meaning]
        });
        columns(text, ["action", "values", "normalisation", "meaning"], action.collect());
    }
}

fn meaning(representation: Representation) -> &'static str {
    match representation {
        Representation::Absolute => "absolute",
        Representation::PoseRot6d => "pose xyz_rot6d",
        Representation::PoseRotvec => "pose xyz_rotvec",
        Representation::PoseMatrix => "pose matrix",
        Representation::Delta => "change per step",
    }
}

/// A table with a header; columns as wide as their widest entry.
fn columns(text: &mut String, header: [&str; 4], rows: Vec<[String; 4]>) {
    let header = header.map(str::to_owned);
    let width = |column: usize| {
        let entries = rows.iter().chain([&header]).map(|row| row[column].chars().count());
        entries.max().unwrap_or(0)
    };
    let widths: [usize; 4] = std::array::from_fn(width);
    for (place, row) in [&header].into_iter().chain(&rows).enumerate() {
        let indent = if place == 0 { "  " } else { "    " };
        // The header stands two places further to the left.
        let first = widths[0] + 4 - indent.len();
        let [name, values, how, meaning] = row;
        let [_, second, third, _] = widths;
        let line = format!("{indent}{name:first$}  {values:>second$}  {how:third$}  {meaning}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
