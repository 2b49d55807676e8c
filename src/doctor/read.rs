//! Reading one message as the node would, to tell whether it is of use.

use super::input::Role;
use crate::node::compressed;
use crate::node::image::{self, ImageFields};
use crate::node::messages::{CompressedImage, Image, TfMessage};
use crate::node::settings::{CameraSettings, Settings, Transport};

/// The header stamp of a message, `None` where it has none.
///
/// # Errors
/// Why the node would refuse it.
pub fn read(role: Role, bytes: Vec<u8>, settings: &Settings) -> Result<Option<i64>, String> {
    match role {
        Role::Camera(number) => frame(&settings.cameras[number], bytes).map(Some),
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

fn frame(camera: &CameraSettings, bytes: Vec<u8>) -> Result<i64, String> {
    match camera.transport {
        Transport::Raw => {
            let message = Image::from_cdr(bytes).map_err(|error| error.to_string())?;
            let fields = ImageFields {
                encoding: &message.encoding,
                width: message.width,
                height: message.height,
                step: message.step,
                is_bigendian: message.is_bigendian,
            };
            image::decode(&fields, message.data, camera.order)
                .map_err(|error| error.to_string())?;
            Ok(message.stamp_ns)
        }
        Transport::Compressed => {
            let message = CompressedImage::from_cdr(&bytes).map_err(|error| error.to_string())?;
            compressed::decode(&message.format, &message.data, camera.order)
                .map_err(|error| error.to_string())?;
            Ok(message.stamp_ns)
        }
    }
}
