//! Reading one message as the node would, to tell whether it is of use.

use super::input::Role;
use crate::encode::FrameShapes;
use crate::node::frames::accepted_frame;
use crate::node::messages::TfMessage;
use crate::node::settings::Settings;

/// The header stamp of a message, `None` where it has none.
///
/// # Errors
/// Why the node would refuse it.
pub fn read(
    role: Role,
    bytes: Vec<u8>,
    settings: &Settings,
    shapes: &FrameShapes,
) -> Result<Option<i64>, String> {
    match role {
        Role::Camera(number) => {
            let camera = &settings.cameras[number];
            accepted_frame(camera, shapes, bytes).map(|(stamp_ns, _)| Some(stamp_ns))
        }
        Role::State(number) => {
            let read = settings.states[number].reader.read(&bytes);
            read.map(|message| message.stamp_ns).map_err(|error| error.to_string())
        }
        // Every transform has its own stamp, which the poses are about.
        Role::Transforms { .. } => {
            TfMessage::from_cdr(&bytes).map(|_| None).map_err(|error| error.to_string())
        }
    }
}
