//! From values to bytes, as Python's msgpack writes them.

use std::convert::Infallible;

use rmp::encode::buffer::ByteBuf;
use rmp::encode::{self, ValueWriteError};

use super::dialect::Dialect;
use super::value::{Key, Map, Value};

/// Writing to memory does not fail.
type Written = Result<(), ValueWriteError<Infallible>>;

/// The message of a value, whose arrays are written in `dialect`.
pub fn encode(value: &Value<'_>, dialect: Dialect) -> Vec<u8> {
    let mut out = ByteBuf::new();
    let Ok(()) = write(&mut out, value, dialect);
    out.into_vec()
}

fn write(out: &mut ByteBuf, value: &Value<'_>, dialect: Dialect) -> Written {
    match value {
        Value::Nil => encode::write_nil(out).map_err(ValueWriteError::InvalidMarkerWrite),
        Value::Bool(value) => {
            encode::write_bool(out, *value).map_err(ValueWriteError::InvalidMarkerWrite)
        }
        Value::Unsigned(value) => encode::write_uint(out, *value).map(drop),
        Value::Negative(value) => encode::write_sint(out, *value).map(drop),
        Value::Float(value) => encode::write_f64(out, *value),
        Value::Text(text) => encode::write_str(out, text),
        Value::Bytes(bytes) => encode::write_bin(out, bytes),
        Value::List(items) => {
            encode::write_array_len(out, items.len() as u32)?;
            items.iter().try_for_each(|item| write(out, item, dialect))
        }
        Value::Map(map) => write_map(out, map, dialect),
        Value::Array(array) => write_map(out, &dialect.write(array), dialect),
    }
}

fn write_map(out: &mut ByteBuf, map: &Map<'_>, dialect: Dialect) -> Written {
    encode::write_map_len(out, map.len() as u32)?;
    map.iter().try_for_each(|(key, value)| {
        match key {
            Key::Text(text) => encode::write_str(out, text)?,
            Key::Bytes(bytes) => encode::write_bin(out, bytes)?,
        }
        write(out, value, dialect)
    })
}
