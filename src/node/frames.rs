//! Camera messages to pictures, whatever the transport.

use super::compressed;
use super::image::{self, Decoded, ImageFields};
use super::messages::{CompressedImage, Image, MessageError};
use super::settings::{CameraSettings, Transport};
use crate::encode::FrameShapes;

/// Stamp and picture of a camera message, if the policy takes frames of its shape.
///
/// # Errors
/// Why the message is of no use.
pub fn accepted_frame(
    camera: &CameraSettings,
    shapes: &FrameShapes,
    bytes: Vec<u8>,
) -> Result<(i64, Decoded), String> {
    let (stamp_ns, decoded) = frame(camera, bytes)?;
    shapes.check(&camera.key, &decoded.frame).map_err(|error| error.to_string())?;
    Ok((stamp_ns, decoded))
}

/// Stamp and picture of a camera message.
///
/// # Errors
/// Why the message is of no use.
pub fn frame(camera: &CameraSettings, bytes: Vec<u8>) -> Result<(i64, Decoded), String> {
    let malformed = |error: MessageError| error.to_string();
    match camera.transport {
        Transport::Raw => {
            let message = Image::from_cdr(bytes).map_err(malformed)?;
            let fields = ImageFields {
                encoding: &message.encoding,
                width: message.width,
                height: message.height,
                step: message.step,
                is_bigendian: message.is_bigendian,
            };
            let decoded = image::decode(&fields, message.data, camera.order);
            Ok((message.stamp_ns, decoded.map_err(|error| error.to_string())?))
        }
        Transport::Compressed => {
            let message = CompressedImage::from_cdr(&bytes).map_err(malformed)?;
            let decoded = compressed::decode(&message.format, &message.data, camera.order);
            Ok((message.stamp_ns, decoded.map_err(|error| error.to_string())?))
        }
    }
}
