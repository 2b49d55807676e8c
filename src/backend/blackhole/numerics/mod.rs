//! Numbers as the card stores them: tiles of bf16, bfp8_b and bfp4_b, byte for byte what `ttnn` 0.81.1 makes on the host.
//!
//! A matrix `[rows, cols]` is cut into tiles of 32 x 32, row by row of tiles; what is missing in the last ones is zero.
//! [`tile`] says where in its tile a value lies.
//!
//! | format | bytes of a tile | exponents | values |
//! |---|---|---|---|
//! | `bf16` | 2048 | | 1024 of 16 bits, little-endian |
//! | `bfp8_b` | 1088 | 64 bytes | 1024 bytes: sign, 7 bits of magnitude |
//! | `bfp4_b` | 576 | 64 bytes | 512 bytes: two values each, the first in the low half: sign, 3 bits of magnitude |
//!
//! In the block formats the 16 values of one row of a face share an exponent, the largest of theirs in f32's own
//! encoding (biased by 127). The 64 exponents of a tile come first, face by face and row by row. A value is
//! `(-1)^sign x magnitude x 2^(exponent - 133)` in bfp8_b, `... x 2^(exponent - 129)` in bfp4_b: the largest one of a
//! row has the top bit of its magnitude set.
//!
//! Rules of rounding, all of them observed on the wheel:
//!
//! | input | bf16 | bfp8_b, bfp4_b |
//! |---|---|---|
//! | between two values | to nearest, ties to even | to nearest, ties to even, but see below |
//! | would round up to twice the largest magnitude | the next exponent | the largest magnitude; the exponent stays |
//! | subnormal | kept | zero |
//! | -0, or rounds to it | kept | +0 |
//! | infinity, NaN | infinity; NaN of f32 becomes 0x7fc0, of bf16 is kept | a number with exponent 255 |
//!
//! Blocks: a significand of 24 bits is first shifted down by the distance of its exponent to the shared one, which
//! forgets the bits that fall out, and then rounded. So an f32 just above a tie may be rounded as the tie. A bf16
//! loses nothing that way.

mod bf16;
mod block;
mod dtype_policy;
mod element;
mod error;
mod fidelity;
mod format;
mod pack;
pub mod tile;
mod unpack;
mod view;

pub use bf16::round_to_bf16;
pub use dtype_policy::DtypePolicy;
pub use element::Element;
pub use error::NumericsError;
pub use fidelity::{Accumulation, MathFidelity};
pub use format::TileFormat;
pub use pack::{Progress, pack_block, pack_matrix};
pub use unpack::unpack_matrix;
pub use view::MatrixView;
