//! The ways in which clients write an array as a map.

use std::borrow::Cow;

use super::array::{Arrangement, Array, ArrayError};
use super::dtype::{Dtype, DtypeError};
use super::npy::{self, NpyError};
use super::value::{Key, Map, Value};

/// How a client writes arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub form: Form,
    pub keys: Keys,
}

/// What the map of an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `{__ndarray_class__: true, as_npy}`: GR00T's clients of N1.5, N1.6 and the first ones of N1.7.
    Npy,
    /// `{nd: true, type, kind, shape, data}`: the package msgpack-numpy, and GR00T's later clients of N1.7.
    MsgpackNumpy,
    /// `{__ndarray__: true, data, dtype, shape}`: openpi's package of the same name.
    Openpi,
}

/// What type the keys of such a map have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    Text,
    Binary,
}

/// Why a map with the mark of an array is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayMapError {
    #[error("its map has no '{key}'")]
    NoField { key: &'static str },
    #[error("'{key}' of its map is {found}; accepted: {accepted}")]
    Field { key: &'static str, found: &'static str, accepted: &'static str },
    #[error(transparent)]
    Npy(#[from] NpyError),
    #[error(transparent)]
    Array(#[from] ArrayError),
}

impl From<DtypeError> for ArrayMapError {
    fn from(error: DtypeError) -> Self {
        ArrayMapError::Array(error.into())
    }
}

const NPY_MARK: &str = "__ndarray_class__";
const NPY_FILE: &str = "as_npy";
const MSGPACK_NUMPY_MARK: &str = "nd";
const OPENPI_MARK: &str = "__ndarray__";

impl Dialect {
    /// What an answer is written in if its request had no array: as GR00T's own clients do.
    pub const DEFAULT: Dialect = Dialect { form: Form::Npy, keys: Keys::Text };

    /// The dialect of a map that stands for an array; `None` for any other map.
    pub(super) fn of(map: &Map<'_>) -> Option<Dialect> {
        let marks = [
            (NPY_MARK, Form::Npy),
            (MSGPACK_NUMPY_MARK, Form::MsgpackNumpy),
            (OPENPI_MARK, Form::Openpi),
        ];
        marks.into_iter().find_map(|(mark, form)| {
            let (key, value) = map.entry(mark)?;
            let keys = match key {
                Key::Text(_) => Keys::Text,
                Key::Bytes(_) => Keys::Binary,
            };
            matches!(value, Value::Bool(_)).then_some(Dialect { form, keys })
        })
    }

    /// The array that a map of this dialect stands for.
    pub(super) fn read<'a>(self, mut map: Map<'a>) -> Result<Array<'a>, ArrayMapError> {
        match self.form {
            Form::Npy => match bytes(&mut map, NPY_FILE)? {
                Cow::Borrowed(file) => Ok(npy::read(file)?),
                Cow::Owned(file) => {
                    let array = npy::read(&file)?;
                    let (dtype, shape) = (array.dtype(), array.shape().to_vec());
                    Ok(Array::new(dtype, shape, array.into_bytes())?)
                }
            },
            Form::MsgpackNumpy => {
                match map.take("kind").map(Value::into_bytes) {
                    Some(Ok(kind)) if kind.as_ref() == b"O" => {
                        return Err(DtypeError::Object.into());
                    }
                    Some(Ok(kind)) if kind.as_ref() == b"V" => {
                        return Err(DtypeError::Structured.into());
                    }
                    _ => {}
                }
                // Marked false, it is a number of numpy's and has no shape.
                let is_array = map.get(MSGPACK_NUMPY_MARK) == Some(&Value::Bool(true));
                let shape = if is_array { shape(&mut map)? } else { vec![] };
                raw(&mut map, "type", shape)
            }
            Form::Openpi => {
                let shape = shape(&mut map)?;
                raw(&mut map, "dtype", shape)
            }
        }
    }

    /// The map that stands for an array in this dialect.
    pub(super) fn write<'a>(self, array: &'a Array<'_>) -> Map<'a> {
        let shape = || {
            Value::List(array.shape().iter().map(|axis| Value::Unsigned(*axis as u64)).collect())
        };
        let data = || Value::Bytes(Cow::Borrowed(array.bytes()));
        let descr = || Value::from(array.dtype().descr());
        let entries = match self.form {
            Form::Npy => vec![
                (NPY_MARK, Value::Bool(true)),
                (NPY_FILE, Value::Bytes(Cow::Owned(npy::write(array)))),
            ],
            Form::MsgpackNumpy => vec![
                (MSGPACK_NUMPY_MARK, Value::Bool(true)),
                ("type", descr()),
                ("kind", self.numpy_kind(array.dtype())),
                ("shape", shape()),
                ("data", data()),
            ],
            Form::Openpi => vec![
                (OPENPI_MARK, Value::Bool(true)),
                ("data", data()),
                ("dtype", descr()),
                ("shape", shape()),
            ],
        };
        let key = |name: &'static str| match self.keys {
            Keys::Text => Key::Text(name.into()),
            Keys::Binary => Key::Bytes(name.as_bytes().into()),
        };
        Map::from_entries(entries.into_iter().map(|(name, value)| (key(name), value)).collect())
    }

    /// msgpack-numpy leaves the kind of plain numbers empty; those who write text keys write numpy's letter.
    fn numpy_kind<'a>(self, dtype: Dtype) -> Value<'a> {
        match self.keys {
            Keys::Binary => Value::Bytes(Cow::Borrowed(b"")),
            Keys::Text => Value::from(dtype.kind().to_string()),
        }
    }
}

fn take<'a>(map: &mut Map<'a>, key: &'static str) -> Result<Value<'a>, ArrayMapError> {
    map.take(key).ok_or(ArrayMapError::NoField { key })
}

fn bytes<'a>(map: &mut Map<'a>, key: &'static str) -> Result<Cow<'a, [u8]>, ArrayMapError> {
    let accepted = "binary data";
    let wrong = |value: Value| ArrayMapError::Field { key, found: value.kind(), accepted };
    take(map, key)?.into_bytes().map_err(wrong)
}

fn shape(map: &mut Map<'_>) -> Result<Vec<usize>, ArrayMapError> {
    let (key, accepted) = ("shape", "a list of lengths");
    let axes = match take(map, key)? {
        Value::List(axes) => axes,
        other => return Err(ArrayMapError::Field { key, found: other.kind(), accepted }),
    };
    let length = |axis: &Value| match axis {
        Value::Unsigned(length) => usize::try_from(*length).ok(),
        _ => None,
    };
    let lengths: Option<Vec<usize>> = axes.iter().map(length).collect();
    lengths.ok_or(ArrayMapError::Field { key, found: "a list with something else", accepted })
}

/// The array of the bytes in `data`, whose type stands under `type_key`.
fn raw<'a>(
    map: &mut Map<'a>,
    type_key: &'static str,
    shape: Vec<usize>,
) -> Result<Array<'a>, ArrayMapError> {
    let descr = match take(map, type_key)? {
        Value::List(_) => return Err(DtypeError::Structured.into()),
        other => other.into_bytes().map_err(|value| ArrayMapError::Field {
            key: type_key,
            found: value.kind(),
            accepted: "a type such as '<f4'",
        })?,
    };
    let (dtype, order) = Dtype::parse(&String::from_utf8_lossy(&descr))?;
    let data = bytes(map, "data")?;
    Ok(Array::arranged(dtype, shape, data, Arrangement { bytes: order, fortran: false })?)
}
