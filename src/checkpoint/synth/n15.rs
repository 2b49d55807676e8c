//! Synthetic N1.5 snapshots.

use serde_json::{Map, Value, json};

use super::robots::{Quantity, constant_statistics, ranges};
use super::{Recipe, Size};
use crate::checkpoint::CONFIG_FILE;
use crate::checkpoint::n15::{self, BACKBONE_FILE, Config, METADATA_FILE};

pub fn recipe(size: Size) -> Recipe {
    let config = network(size);
    let (network, backbone) = n15::to_json(&config);
    let mut files = vec![(CONFIG_FILE, network), (METADATA_FILE, metadata())];
    if size != Size::Full {
        files.push((BACKBONE_FILE, backbone));
    }
    Recipe { tensors: n15::tensors(&config), shard_limit: shard_limit(size), files }
}

fn network(size: Size) -> Config {
    let mut config = Config::released();
    let Config { vision, llm, adapter, head, .. } = &mut config;
    match size {
        Size::Full => {}
        Size::Mid => {
            vision.layers = 2;
            llm.layers = 2;
            adapter.layers = 2;
            head.dit_layers = 4;
        }
        Size::Tiny => {
            (vision.width, vision.layers, vision.heads, vision.mlp_width) = (64, 2, 2, 112);
            (llm.width, llm.layers, llm.mlp_width) = (32, 2, 64);
            (llm.heads, llm.kv_heads, llm.head_dim) = (4, 2, 16);
            (adapter.layers, adapter.heads, adapter.head_dim) = (2, 2, 16);
            (head.dit_layers, head.dit_heads, head.dit_head_dim) = (4, 2, 32);
            (head.dit_output, head.hidden, head.position_rows) = (32, 32, 64);
        }
    }
    config
}

fn shard_limit(size: Size) -> u64 {
    match size {
        Size::Tiny => 10_000_000,
        // As the released weights, which are three files.
        Size::Mid | Size::Full => 2_000_000_000,
    }
}

/// A robot of every synthetic N1.5 checkpoint.
struct Robot {
    tag: &'static str,
    cameras: &'static [&'static str],
    /// Width and height of the cameras' frames, in pixels.
    resolution: [usize; 2],
    fps: f64,
    state: Vec<Group>,
    action: Vec<Group>,
}

struct Group {
    name: &'static str,
    dim: usize,
    quantity: Quantity,
    rotation_type: Option<&'static str>,
    absolute: bool,
}

impl Group {
    /// Values that stand for themselves.
    fn new(name: &'static str, dim: usize, quantity: Quantity) -> Self {
        Self { name, dim, quantity, rotation_type: None, absolute: true }
    }

    fn rotation(self, rotation_type: &'static str) -> Self {
        Self { rotation_type: Some(rotation_type), ..self }
    }

    fn delta(self) -> Self {
        Self { absolute: false, ..self }
    }
}

/// A humanoid with sines and cosines, an arm with rotations, and a small arm of one's own. Every one of them fits the data
/// config that is meant where none is named.
fn robots() -> [Robot; 3] {
    let gr1 = || {
        let groups = [
            ("left_arm", 7),
            ("right_arm", 7),
            ("left_hand", 6),
            ("right_hand", 6),
            ("waist", 3),
            ("neck", 3),
        ];
        groups.map(|(name, dim)| Group::new(name, dim, Quantity::Angle)).into()
    };
    let so100 = || {
        vec![
            Group::new("single_arm", 5, Quantity::Angle),
            Group::new("gripper", 1, Quantity::Gripper),
        ]
    };
    let euler = "euler_angles_rpy";
    [
        Robot {
            tag: "gr1",
            cameras: &["ego_view"],
            resolution: [256, 256],
            fps: 20.0,
            state: gr1(),
            action: gr1(),
        },
        Robot {
            tag: "oxe_droid",
            cameras: &["exterior_image_1", "exterior_image_2", "wrist_image"],
            resolution: [320, 180],
            fps: 15.0,
            state: vec![
                Group::new("eef_position", 3, Quantity::Position),
                Group::new("eef_rotation", 3, Quantity::Angle).rotation(euler),
                Group::new("gripper_position", 1, Quantity::Gripper),
            ],
            action: vec![
                Group::new("eef_position_delta", 3, Quantity::Position).delta(),
                Group::new("eef_rotation_delta", 3, Quantity::Angle).rotation(euler).delta(),
                Group::new("gripper_position", 1, Quantity::Gripper),
            ],
        },
        Robot {
            tag: "new_embodiment",
            cameras: &["webcam"],
            resolution: [640, 480],
            fps: 30.0,
            state: so100(),
            action: so100(),
        },
    ]
}

fn metadata() -> Value {
    let tags: Map<String, Value> =
        robots().iter().map(|robot| (robot.tag.to_owned(), robot.metadata())).collect();
    tags.into()
}

impl Robot {
    fn metadata(&self) -> Value {
        let video: Map<String, Value> = self
            .cameras
            .iter()
            .map(|camera| {
                let entry =
                    json!({ "resolution": self.resolution, "channels": 3, "fps": self.fps });
                ((*camera).to_owned(), entry)
            })
            .collect();
        json!({
            "embodiment_tag": self.tag,
            "modalities": {
                "video": video,
                "state": table(&self.state, Group::declaration),
                "action": table(&self.action, Group::declaration),
            },
            "statistics": {
                "state": table(&self.state, |group| self.statistics("state", group)),
                "action": table(&self.action, |group| self.statistics("action", group)),
            },
        })
    }

    fn statistics(&self, table: &str, group: &Group) -> Value {
        let path = format!("{}.{table}.{}", self.tag, group.name);
        constant_statistics(&ranges(&path, group.quantity, group.dim))
    }
}

fn table(groups: &[Group], entry: impl Fn(&Group) -> Value) -> Value {
    groups.iter().map(|group| (group.name, entry(group))).collect()
}

impl Group {
    fn declaration(&self) -> Value {
        json!({
            "absolute": self.absolute,
            "rotation_type": self.rotation_type,
            "shape": [self.dim],
            "continuous": true,
        })
    }
}
