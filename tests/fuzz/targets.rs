//! What has to hold of any bytes. Each target tells whether they were accepted.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use gr00t_blackhole::contract::Frame;
use gr00t_blackhole::picture::{self, Codec};
use gr00t_blackhole::serve::arrays::{Dialect, decode, encode, read_npy, write_npy};
use gr00t_blackhole::serve::{Model, http, zmq};
use serde_json::{Map, Value as Json, json};

use crate::rig::Asking;
use crate::stub::{Asked, Stub};

/// A robot with one camera, an arm and a gripper.
pub fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Stub::default().model())
}

pub fn camera() -> &'static str {
    &model().embodiment.cameras[0]
}

/// A body that is accepted, with this text for a picture.
pub fn body(picture: &str) -> Json {
    let groups = model().embodiment.state.iter();
    let state: Map<String, Json> =
        groups.map(|group| (group.name.clone(), json!(vec![0.5; group.dim]))).collect();
    json!({ "images": { camera(): picture }, "state": state, "instruction": "pick the pear" })
}

/// A body is read or refused for what is in it, which is never the server's fault.
pub fn json(data: &[u8]) -> bool {
    match http::read(data, model()) {
        Ok(asked) => {
            assert_eq!(asked.observation.state.len(), model().embodiment.state.len());
            let values = asked.observation.state.values().flatten();
            assert!({ values }.all(|value| value.is_finite()));
            true
        }
        Err(error) => {
            assert!(error.status().is_client_error(), "{}: {error}", error.status());
            false
        }
    }
}

/// A picture in a body is the one that the same bytes give elsewhere.
pub fn base64(data: &[u8]) -> bool {
    const PADDED_OR_NOT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text = String::from_utf8_lossy(data);
    let bare: String = text.split_ascii_whitespace().collect();
    let decoded = PADDED_OR_NOT.decode(bare).ok().and_then(|data| picture::decode(&data).ok());
    let expected = decoded.and_then(|picture| picture.into_frame().ok());
    let found = http::read(body(&text).to_string().as_bytes(), model()).ok();
    let found = found.map(|asked| asked.observation.frames[camera()][0].clone());
    assert_eq!(found.as_deref().map(Frame::rgb), expected.as_ref().map(Frame::rgb));
    found.is_some()
}

/// An array that is read is written, and read again, as the same.
pub fn npy(data: &[u8]) -> bool {
    let Ok(array) = read_npy(data) else { return false };
    let elements = array.shape().iter().product::<usize>();
    assert!(array.numbers().is_none_or(|numbers| numbers.len() == elements));
    assert!(array.texts().is_none_or(|texts| texts.len() <= elements));
    let written = write_npy(&array);
    assert_eq!(read_npy(&written).unwrap(), array);
    true
}

/// A message that is read is written, and read again, as the same; and whatever it is, the server has an answer.
pub fn message(data: &[u8]) -> bool {
    let (handler, asked) = server();
    decode(&handler.handle(data)).unwrap();
    asked.lock().unwrap().clear();
    let Ok(message) = decode(data) else { return false };
    let dialect = message.dialect.unwrap_or(Dialect::DEFAULT);
    let written = encode(&message.value, dialect);
    // Bytes are compared, as no NaN is equal to itself.
    let again = decode(&written).unwrap().value;
    assert!(encode(&again, dialect) == written, "{:?}", message.value);
    true
}

/// A picture is decoded to as many pixels as it says, or refused. The checksums of a PNG are made right before, since else
/// nothing behind them would be reached.
pub fn picture(data: &[u8]) -> bool {
    let mut data = data.to_vec();
    if Codec::of(&data) == Ok(Codec::Png) {
        repair(&mut data);
    }
    let Ok(picture) = picture::decode(&data) else { return false };
    assert_eq!(picture.rgb.len(), 3 * picture.width as usize * picture.height as usize);
    picture.into_frame().unwrap();
    true
}

/// Writes the right checksum behind each chunk of a PNG.
fn repair(data: &mut [u8]) {
    const SIGNATURE: usize = 8;
    let mut at = SIGNATURE;
    while let Some(length) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let end = (at + 8).saturating_add(u32::from_be_bytes(*length) as usize);
        if data.len() < end.saturating_add(4) {
            return;
        }
        let sum = crc32fast::hash(&data[at + 4..end]);
        data[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
}

/// The server of GR00T's clients, without a socket, and what its policy was asked.
fn server() -> &'static (Asking, Asked) {
    static SERVER: OnceLock<(Asking, Asked)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let stub = Stub::default();
        let asked = stub.asked.clone();
        (Asking::stub(stub, zmq::Settings::default()), asked)
    })
}
