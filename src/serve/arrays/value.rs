//! The values of a message.

use std::borrow::Cow;

use super::array::Array;

/// A MessagePack value; maps that stand for arrays are arrays.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Nil,
    Bool(bool),
    /// An integer from 0 up.
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(Cow<'a, str>),
    /// Binary data, or a string that is no UTF-8, as writers without binary data send it.
    Bytes(Cow<'a, [u8]>),
    List(Vec<Value<'a>>),
    Map(Map<'a>),
    Array(Array<'a>),
}

/// Key of a map. Python's `"nd"` and `b"nd"` are two keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// Entries in the order of the message; no key stands twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map<'a>(Vec<(Key<'a>, Value<'a>)>);

impl<'a> Value<'a> {
    /// A word for its type, in sentences.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Unsigned(_) | Value::Negative(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::Bytes(_) => "binary data",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Array(_) => "an array",
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The bytes of binary data or of a string, which writers without binary data send in its place.
    pub(super) fn into_bytes(self) -> Result<Cow<'a, [u8]>, Self> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Text(Cow::Borrowed(text)) => Ok(Cow::Borrowed(text.as_bytes())),
            Value::Text(Cow::Owned(text)) => Ok(Cow::Owned(text.into_bytes())),
            other => Err(other),
        }
    }
}

impl From<&'static str> for Value<'_> {
    fn from(text: &'static str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl Key<'_> {
    /// As text, for messages.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Key::Text(text) => Cow::Borrowed(text),
            Key::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            Key::Text(text) => text == name,
            Key::Bytes(bytes) => bytes.as_ref() == name.as_bytes(),
        }
    }
}

impl<'a> Map<'a> {
    /// `entries` must not have a key twice.
    pub(super) fn from_entries(entries: Vec<(Key<'a>, Value<'a>)>) -> Self {
        Self(entries)
    }

    /// Adds an entry behind the others, under a key that is not there yet.
    pub fn with(mut self, key: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) -> Self {
        self.0.push((Key::Text(key.into()), value.into()));
        self
    }

    /// The value under a key, be it text or binary.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.entry(name).map(|(_, value)| value)
    }

    pub(super) fn entry(&self, name: &str) -> Option<&(Key<'a>, Value<'a>)> {
        self.0.iter().find(|(key, _)| key.is(name))
    }

    /// Takes a value out; the order of the others may change.
    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.0.iter().position(|(key, _)| key.is(name))?;
        Some(self.0.swap_remove(at).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Key<'a>, Value<'a>)> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for Map<'a> {
    type Item = (Key<'a>, Value<'a>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
