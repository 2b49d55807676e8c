//! How a message becomes bytes on the socket: its length, then JSON.

use serde::Serialize;

/// Most bytes of the body of a frame.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// Bytes that are no frame, or a message that would be none.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {bytes} bytes; a frame has 1 to {MAX_FRAME_BYTES}")]
    Length { bytes: usize },
    #[error("the message cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Length of the body that follows these four bytes.
pub fn decode_length(head: [u8; 4]) -> Result<usize, FrameError> {
    checked(u32::from_le_bytes(head) as usize)
}

/// The frame of a request.
pub fn encode(id: u64, request: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    #[derive(Serialize)]
    struct Envelope<'a, T> {
        id: u64,
        #[serde(flatten)]
        request: &'a T,
    }
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, &Envelope { id, request })?;
    let bytes = checked(frame.len() - 4)?;
    frame[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    Ok(frame)
}

fn checked(bytes: usize) -> Result<usize, FrameError> {
    if bytes == 0 || bytes > MAX_FRAME_BYTES {
        return Err(FrameError::Length { bytes });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Request;

    #[test]
    fn a_frame_is_its_length_and_its_body() {
        let frame = encode(7, &Request::EndCapture {}).expect("a frame");
        assert_eq!(&frame[4..], br#"{"id":7,"request":"end_capture"}"#);
        assert_eq!(
            decode_length([frame[0], frame[1], frame[2], frame[3]]).ok(),
            Some(frame.len() - 4)
        );
    }

    #[test]
    fn lengths_have_a_limit() {
        let most = MAX_FRAME_BYTES as u32;
        assert_eq!(decode_length(most.to_le_bytes()).ok(), Some(MAX_FRAME_BYTES));
        for bytes in [0, most + 1, u32::MAX] {
            assert!(matches!(decode_length(bytes.to_le_bytes()), Err(FrameError::Length { .. })));
        }
    }
}
