//! What a message looks like, in the words of whoever looks for a cause.

use crate::node::messages::{CompressedImage, ImageLayout, JointState};
use crate::node::settings::{CameraSettings, StateSettings, Transport};
use crate::node::state::StateReader;
use crate::picture;

/// Size, encoding and padding of a picture; `None` for a message that is none.
pub fn of_frame(camera: &CameraSettings, bytes: &[u8], size: Option<[u32; 2]>) -> Option<String> {
    match camera.transport {
        Transport::Raw => {
            let ImageLayout { width, height, encoding, step } =
                ImageLayout::from_cdr(bytes).ok()?;
            let row = channel_bytes(&encoding)?.checked_mul(width as usize)?;
            let padding = match (step as usize).checked_sub(row) {
                None | Some(0) => String::new(),
                Some(_) => format!(", rows of {row} bytes padded to {step}"),
            };
            Some(format!("{width}x{height} {encoding}{padding}"))
        }
        Transport::Compressed => {
            let message = CompressedImage::from_cdr(bytes).ok()?;
            let codec = picture::Codec::of(&message.data).ok()?.name();
            let size = size.map_or(String::new(), |[width, height]| format!("{width}x{height} "));
            Some(format!("{size}{codec} (format '{}')", message.format))
        }
    }
}

/// Bytes of a pixel, of the encodings that are accepted.
fn channel_bytes(encoding: &str) -> Option<usize> {
    let channels = match encoding.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "rgb" | "bgr" => 3,
        "rgba" | "bgra" => 4,
        "mono" => 1,
        "8UC" => encoding.strip_prefix("8UC")?.parse().ok()?,
        _ => return None,
    };
    Some(if encoding.ends_with("16") { 2 * channels } else { channels })
}

/// The order of the joints in a message, told by its first and last; `None` for a source that has no names.
pub fn of_state(state: &StateSettings, bytes: &[u8]) -> Option<JointOrder> {
    let StateReader::Joints { .. } = state.reader else { return None };
    let names = JointState::from_cdr(bytes).ok()?.name;
    Some(JointOrder(names))
}

/// Names of joints as a message has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointOrder(Vec<String>);

impl JointOrder {
    pub fn text(&self) -> String {
        match (self.0.first(), self.0.last()) {
            (Some(first), Some(last)) => {
                format!("{} joints, {first} first, {last} last", self.0.len())
            }
            _ => "no joints".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_their_bytes() {
        for (encoding, bytes) in [
            ("rgb8", Some(3)),
            ("bgra16", Some(8)),
            ("mono16", Some(2)),
            ("8UC3", Some(3)),
            ("yuv422", None),
        ] {
            assert_eq!(channel_bytes(encoding), bytes, "{encoding}");
        }
    }
}
