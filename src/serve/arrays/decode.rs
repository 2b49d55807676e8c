//! From bytes to values.

use std::borrow::Cow;
use std::collections::HashSet;

use rmp::Marker;

use super::dialect::{ArrayMapError, Dialect};
use super::value::{Key, Map, Value};

/// Lists and maps inside each other; an observation has five.
pub const MAX_DEPTH: usize = 16;

/// Values in one message; an observation has a hundred, and the elements of an array are not values.
pub const MAX_VALUES: usize = 100_000;

/// Bytes of a key that are shown.
const SHOWN: usize = 64;

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    pub value: Value<'a>,
    /// Of its first array; `None` if it has none.
    pub dialect: Option<Dialect>,
}

/// Why bytes are no message that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", if path.is_empty() { "the request" } else { path.as_str() })]
pub struct DecodeError {
    /// Keys that lead to the value, with dots between them.
    pub path: String,
    pub problem: Problem,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("it is no MessagePack: cut off at byte {at}")]
    Cut { at: usize },
    #[error("it is no MessagePack: {rest} bytes follow its only value")]
    Rest { rest: usize },
    #[error("it is no MessagePack: byte {at} is 0xc1, which is never used")]
    Reserved { at: usize },
    #[error("lists and maps lie deeper than {MAX_DEPTH} inside each other")]
    Depth,
    #[error("it has more than {MAX_VALUES} values; send numbers as arrays")]
    Values,
    #[error("it is an extension type, and none is known")]
    Extension,
    #[error("a key of the map is {found}; accepted: strings")]
    KeyKind { found: &'static str },
    #[error("the key '{key}' stands twice")]
    RepeatedKey { key: String },
    #[error(transparent)]
    Array(#[from] ArrayMapError),
}

/// Reads one message, which is all of `bytes`.
///
/// # Errors
/// The bytes are no MessagePack, go beyond a limit, or have an array that is refused; the error tells where.
pub fn decode(bytes: &[u8]) -> Result<Message<'_>, DecodeError> {
    let mut reader = Reader { bytes, at: 0, values: 0, depth: 0, path: vec![], dialect: None };
    let read = reader.value().and_then(|value| match bytes.len() - reader.at {
        0 => Ok(value),
        rest => Err(Problem::Rest { rest }),
    });
    match read {
        Ok(value) => Ok(Message { value, dialect: reader.dialect }),
        Err(problem) => Err(DecodeError { path: reader.path.join("."), problem }),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
    depth: usize,
    /// Keys that lead to the value that is read.
    path: Vec<String>,
    dialect: Option<Dialect>,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Result<Value<'a>, Problem> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Problem::Values);
        }
        let at = self.at;
        Ok(match Marker::from_u8(u8::from_be_bytes(self.chunk()?)) {
            Marker::Null => Value::Nil,
            Marker::True => Value::Bool(true),
            Marker::False => Value::Bool(false),
            Marker::FixPos(value) => Value::Unsigned(value.into()),
            Marker::U8 => Value::Unsigned(u8::from_be_bytes(self.chunk()?).into()),
            Marker::U16 => Value::Unsigned(u16::from_be_bytes(self.chunk()?).into()),
            Marker::U32 => Value::Unsigned(u32::from_be_bytes(self.chunk()?).into()),
            Marker::U64 => Value::Unsigned(u64::from_be_bytes(self.chunk()?)),
            Marker::FixNeg(value) => Value::Negative(value.into()),
            Marker::I8 => integer(i8::from_be_bytes(self.chunk()?).into()),
            Marker::I16 => integer(i16::from_be_bytes(self.chunk()?).into()),
            Marker::I32 => integer(i32::from_be_bytes(self.chunk()?).into()),
            Marker::I64 => integer(i64::from_be_bytes(self.chunk()?)),
            Marker::F32 => Value::Float(f32::from_be_bytes(self.chunk()?).into()),
            Marker::F64 => Value::Float(f64::from_be_bytes(self.chunk()?)),
            Marker::FixStr(length) => self.text(length.into())?,
            Marker::Str8 => self.length8().and_then(|length| self.text(length))?,
            Marker::Str16 => self.length16().and_then(|length| self.text(length))?,
            Marker::Str32 => self.length32().and_then(|length| self.text(length))?,
            Marker::Bin8 => self.length8().and_then(|length| self.binary(length))?,
            Marker::Bin16 => self.length16().and_then(|length| self.binary(length))?,
            Marker::Bin32 => self.length32().and_then(|length| self.binary(length))?,
            Marker::FixArray(length) => self.list(length.into())?,
            Marker::Array16 => self.length16().and_then(|length| self.list(length))?,
            Marker::Array32 => self.length32().and_then(|length| self.list(length))?,
            Marker::FixMap(length) => self.map(length.into())?,
            Marker::Map16 => self.length16().and_then(|length| self.map(length))?,
            Marker::Map32 => self.length32().and_then(|length| self.map(length))?,
            Marker::Reserved => return Err(Problem::Reserved { at }),
            Marker::FixExt1
            | Marker::FixExt2
            | Marker::FixExt4
            | Marker::FixExt8
            | Marker::FixExt16
            | Marker::Ext8
            | Marker::Ext16
            | Marker::Ext32 => return Err(Problem::Extension),
        })
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], Problem> {
        let taken = self.bytes[self.at..].get(..length).ok_or(Problem::Cut { at: self.at })?;
        self.at += length;
        Ok(taken)
    }

    fn chunk<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Problem> {
        let rest = &self.bytes[self.at..];
        let chunk = rest.first_chunk().ok_or(Problem::Cut { at: self.at })?;
        self.at += BYTES;
        Ok(*chunk)
    }

    fn length8(&mut self) -> Result<usize, Problem> {
        Ok(u8::from_be_bytes(self.chunk()?).into())
    }

    fn length16(&mut self) -> Result<usize, Problem> {
        Ok(u16::from_be_bytes(self.chunk()?).into())
    }

    fn length32(&mut self) -> Result<usize, Problem> {
        Ok(u32::from_be_bytes(self.chunk()?) as usize)
    }

    fn text(&mut self, length: usize) -> Result<Value<'a>, Problem> {
        let bytes = self.slice(length)?;
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(Cow::Borrowed(text)),
            Err(_) => Value::Bytes(Cow::Borrowed(bytes)),
        })
    }

    fn binary(&mut self, length: usize) -> Result<Value<'a>, Problem> {
        Ok(Value::Bytes(Cow::Borrowed(self.slice(length)?)))
    }

    fn enter(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Problem::Depth) } else { Ok(()) }
    }

    fn list(&mut self, length: usize) -> Result<Value<'a>, Problem> {
        self.enter()?;
        // Grows with what is there: the length is only what the sender says.
        let mut items = Vec::new();
        for index in 0..length {
            self.path.push(index.to_string());
            items.push(self.value()?);
            self.path.pop();
        }
        self.depth -= 1;
        Ok(Value::List(items))
    }

    fn map(&mut self, length: usize) -> Result<Value<'a>, Problem> {
        self.enter()?;
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..length {
            let key = match self.value()? {
                Value::Text(text) => Key::Text(text),
                Value::Bytes(bytes) => Key::Bytes(bytes),
                other => return Err(Problem::KeyKind { found: other.kind() }),
            };
            let name = shown(&key.name());
            if !seen.insert(key.clone()) {
                return Err(Problem::RepeatedKey { key: name });
            }
            self.path.push(name);
            entries.push((key, self.value()?));
            self.path.pop();
        }
        self.depth -= 1;
        let map = Map::from_entries(entries);
        match Dialect::of(&map) {
            Some(dialect) => {
                let array = dialect.read(map)?;
                self.dialect.get_or_insert(dialect);
                Ok(Value::Array(array))
            }
            None => Ok(Value::Map(map)),
        }
    }
}

fn integer(value: i64) -> Value<'static> {
    u64::try_from(value).map_or(Value::Negative(value), Value::Unsigned)
}

fn shown(name: &str) -> String {
    name.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}
