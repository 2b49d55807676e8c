//! How the operands of instructions become words.

use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::program::Activation;

/// Stands for an address that is not given.
const NONE: u32 = u32::MAX;

/// An operand: one word of 32 bits.
pub trait Field: Sized {
    fn to_word(&self) -> u32;
    /// `None` if no operand has this word.
    fn from_word(word: u32) -> Option<Self>;
}

impl Field for u32 {
    fn to_word(&self) -> u32 {
        *self
    }

    fn from_word(word: u32) -> Option<Self> {
        Some(word)
    }
}

impl Field for f32 {
    fn to_word(&self) -> u32 {
        self.to_bits()
    }

    fn from_word(word: u32) -> Option<Self> {
        Some(f32::from_bits(word))
    }
}

impl Field for Option<u32> {
    fn to_word(&self) -> u32 {
        self.unwrap_or(NONE)
    }

    fn from_word(word: u32) -> Option<Self> {
        Some((word != NONE).then_some(word))
    }
}

impl Field for Core {
    fn to_word(&self) -> u32 {
        u32::from_le_bytes([self.x, self.y, 0, 0])
    }

    fn from_word(word: u32) -> Option<Self> {
        let [x, y, 0, 0] = word.to_le_bytes() else { return None };
        Some(Core::new(x, y)).filter(|core| core.is_on_grid())
    }
}

impl Field for Rectangle {
    fn to_word(&self) -> u32 {
        u32::from_le_bytes([self.start.x, self.start.y, self.end.x, self.end.y])
    }

    fn from_word(word: u32) -> Option<Self> {
        let [x0, y0, x1, y1] = word.to_le_bytes();
        Some(Rectangle { start: Core::new(x0, y0), end: Core::new(x1, y1) })
    }
}

/// Operands that are one of a few things: their words are their places in a list.
macro_rules! choices {
    ($type:ty: $($choice:expr),+ $(,)?) => {
        impl Field for $type {
            fn to_word(&self) -> u32 {
                [$($choice),+].iter().position(|choice| choice == self).map_or(NONE, |at| at as u32)
            }

            fn from_word(word: u32) -> Option<Self> {
                [$($choice),+].get(word as usize).copied()
            }
        }
    };
}

choices!(Noc: Noc::Noc0, Noc::Noc1);
choices!(bool: false, true);
choices!(Activation:
    Activation::Identity,
    Activation::Relu,
    Activation::Silu,
    Activation::GeluTanh,
    Activation::GeluErf,
);
choices!(super::BlockFormat: super::BlockFormat::Bf16, super::BlockFormat::F32);
choices!(crate::backend::blackhole::numerics::TileFormat:
    crate::backend::blackhole::numerics::TileFormat::Bf16,
    crate::backend::blackhole::numerics::TileFormat::Bfp8B,
    crate::backend::blackhole::numerics::TileFormat::Bfp4B,
);
choices!(super::NormScaling:
    super::NormScaling::None,
    super::NormScaling::Affine,
    super::NormScaling::Modulated,
);
choices!(super::RowMotion:
    super::RowMotion::Gather,
    super::RowMotion::Scatter,
    super::RowMotion::ScatterAdd,
);
