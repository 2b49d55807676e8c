//! The parameters `camera.<key>.*`.

use super::super::image::ColourOrder;
use super::super::messages::{CompressedImage, Image};
use super::super::params::{ParamError, Params};
use super::unusable;
use crate::contract::Embodiment;

/// Message type of a camera topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Raw,
    Compressed,
}

impl Transport {
    /// Full name of the messages on the topic.
    pub fn message_type(self) -> &'static str {
        match self {
            Transport::Raw => Image::TYPE,
            Transport::Compressed => CompressedImage::TYPE,
        }
    }
}

/// How one camera is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraSettings {
    pub key: String,
    pub topic: String,
    pub transport: Transport,
    pub order: Option<ColourOrder>,
}

pub(super) fn cameras(
    params: &Params,
    embodiment: &Embodiment,
    errors: &mut Vec<ParamError>,
) -> Vec<CameraSettings> {
    let mut cameras: Vec<CameraSettings> = Vec::new();
    for key in &embodiment.cameras {
        let name = |what: &str| format!("camera.{key}.{what}");
        let topic = params.text(&name("topic")).to_owned();
        if topic.is_empty() {
            errors.push(unusable(name("topic"), "is empty; every camera needs its topic"));
        }
        if let Some(other) = cameras.iter().find(|other| other.topic == topic) {
            let reason = format!("is '{topic}', which camera '{}' has already", other.key);
            errors.push(unusable(name("topic"), reason));
        }
        let transport = match params.text(&name("transport")) {
            "compressed" => Transport::Compressed,
            _ => Transport::Raw,
        };
        let order: Option<ColourOrder> = params.text(&name("order")).parse().ok();
        if transport == Transport::Compressed && order.is_some_and(|order| order.channels() != 3) {
            errors.push(unusable(name("order"), "is rgb or bgr for a compressed topic, or empty"));
        }
        cameras.push(CameraSettings { key: key.clone(), topic, transport, order });
    }
    cameras
}
