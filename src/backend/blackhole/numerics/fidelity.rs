//! How many bits of its operands the matrix engine multiplies.

/// The engine multiplies 5 bits of a weight's significand (its leading one included) by 7 bits of a value's at a time. What
/// is left over takes further passes, or is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, clap::ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum MathFidelity {
    /// One pass: 5 bits of weights, 7 of values.
    LoFi,
    /// Two passes: all bits of weights, 7 of values.
    #[default]
    HiFi2,
    /// Four passes: all bits of both.
    HiFi4,
}

impl MathFidelity {
    pub const NAMES: [&'static str; 3] =
        [Self::LoFi.name(), Self::HiFi2.name(), Self::HiFi4.name()];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoFi => "lofi",
            Self::HiFi2 => "hifi2",
            Self::HiFi4 => "hifi4",
        }
    }

    /// Passes of the engine for one product of tiles.
    pub const fn passes(self) -> usize {
        match self {
            Self::LoFi => 1,
            Self::HiFi2 => 2,
            Self::HiFi4 => 4,
        }
    }

    /// Bits of a weight, as a bf16, that take part.
    pub const fn weight_mask(self) -> u16 {
        match self {
            Self::LoFi => 0xfff8,
            Self::HiFi2 | Self::HiFi4 => 0xffff,
        }
    }

    /// Bits of a value, as a bf16, that take part.
    pub const fn value_mask(self) -> u16 {
        match self {
            Self::LoFi | Self::HiFi2 => 0xfffe,
            Self::HiFi4 => 0xffff,
        }
    }
}

/// What the sums of the matrix engine are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, clap::ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum Accumulation {
    #[default]
    F32,
    /// Rounded after the products of each tile: twice as many sums fit.
    Bf16,
}

impl Accumulation {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }
}
