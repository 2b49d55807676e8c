//! Messages of GR00T's clients: MessagePack values among which numpy arrays stand as maps, in one of several dialects.
//!
//! [`decode`] makes every such map one [`Array`], whatever its dialect, and tells the [`Dialect`], so that [`encode`] can
//! answer in it. Nothing of an array is copied until its values are used, and nothing is allocated by a length that a
//! message merely announces.

mod array;
mod decode;
mod dialect;
mod dtype;
mod encode;
mod npy;
mod npy_header;
mod value;

pub use array::{Array, ArrayError, MAX_DIMENSIONS};
pub use decode::{DecodeError, MAX_DEPTH, MAX_VALUES, Message, Problem, decode};
pub use dialect::{ArrayMapError, Dialect, Form, Keys};
pub use dtype::{Dtype, DtypeError};
pub use encode::encode;
pub use npy::{NpyError, read as read_npy, write as write_npy};
pub use npy_header::{HeaderError, MAX_HEADER_BYTES};
pub use value::{Key, Map, Value};

#[cfg(test)]
mod tests;
