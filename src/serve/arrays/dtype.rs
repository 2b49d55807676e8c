//! Element types of arrays, as numpy writes them.

/// Type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    /// Strings of so many code points, shorter ones filled up with zeros.
    Text {
        chars: usize,
    },
}

/// In which order the bytes of an element lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// Bytes of a code point in an array of strings.
const CHAR_BYTES: usize = 4;

/// Every type but strings: kind and bytes of an element, and its long name.
const NUMBERS: [(Dtype, char, usize, &str); 12] = [
    (Dtype::Bool, 'b', 1, "bool"),
    (Dtype::U8, 'u', 1, "uint8"),
    (Dtype::U16, 'u', 2, "uint16"),
    (Dtype::U32, 'u', 4, "uint32"),
    (Dtype::U64, 'u', 8, "uint64"),
    (Dtype::I8, 'i', 1, "int8"),
    (Dtype::I16, 'i', 2, "int16"),
    (Dtype::I32, 'i', 4, "int32"),
    (Dtype::I64, 'i', 8, "int64"),
    (Dtype::F16, 'f', 2, "float16"),
    (Dtype::F32, 'f', 4, "float32"),
    (Dtype::F64, 'f', 8, "float64"),
];

/// Why a type of elements is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DtypeError {
    #[error(
        "its elements are Python objects, which only unpickling could read; send numbers, or strings of one length"
    )]
    Object,
    #[error("its elements are records; send one array for each field")]
    Structured,
    #[error(
        "its elements are '{0}'; accepted: bool, integers of 8 to 64 bits, float16, float32, float64, and strings ('<U...')"
    )]
    Unknown(String),
}

impl Dtype {
    /// Reads a type string such as `<f4`, or a name such as `float32`.
    pub(super) fn parse(text: &str) -> Result<(Self, ByteOrder), DtypeError> {
        let unknown = || DtypeError::Unknown(text.chars().take(32).collect());
        if let Some((dtype, ..)) = NUMBERS.iter().find(|(.., name)| *name == text) {
            return Ok((*dtype, ByteOrder::Little));
        }
        let (order, rest) = match text.chars().next() {
            Some('>') => (Some(ByteOrder::Big), &text[1..]),
            Some('<' | '=') => (Some(ByteOrder::Little), &text[1..]),
            Some('|') => (None, &text[1..]),
            _ => (None, text),
        };
        let kind = rest.chars().next().ok_or_else(unknown)?;
        match kind {
            'O' => return Err(DtypeError::Object),
            'V' => return Err(DtypeError::Structured),
            _ if !kind.is_ascii() => return Err(unknown()),
            _ => {}
        }
        let size: usize = rest[1..].parse().map_err(|_| unknown())?;
        let dtype = if kind == 'U' {
            Dtype::Text { chars: size }
        } else {
            let number = NUMBERS.iter().find(|(_, k, s, _)| (*k, *s) == (kind, size));
            number.ok_or_else(unknown)?.0
        };
        match order {
            Some(order) => Ok((dtype, order)),
            // One byte has no order; more of them need one.
            None if dtype.unit() == 1 => Ok((dtype, ByteOrder::Little)),
            None => Err(unknown()),
        }
    }

    /// The type string of numpy, little-endian: `<f4`, `|u1`.
    pub fn descr(self) -> String {
        let order = if self.unit() == 1 { '|' } else { '<' };
        match self {
            Dtype::Text { chars } => format!("<U{chars}"),
            number => format!("{order}{}{}", number.kind(), number.unit()),
        }
    }

    /// The letter of numpy for the kind: `b`, `u`, `i`, `f` or `U`.
    pub fn kind(self) -> char {
        self.row().map_or('U', |(_, kind, ..)| *kind)
    }

    /// Bytes that have an order among them.
    pub(super) fn unit(self) -> usize {
        self.row().map_or(CHAR_BYTES, |(_, _, size, _)| *size)
    }

    /// Bytes of an element; `None` where they cannot be counted.
    pub fn size(self) -> Option<usize> {
        match self {
            Dtype::Text { chars } => chars.checked_mul(CHAR_BYTES),
            number => Some(number.unit()),
        }
    }

    fn row(self) -> Option<&'static (Dtype, char, usize, &'static str)> {
        NUMBERS.iter().find(|(dtype, ..)| *dtype == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_strings_are_those_of_numpy() {
        for (text, dtype, order) in [
            ("|b1", Dtype::Bool, ByteOrder::Little),
            ("b1", Dtype::Bool, ByteOrder::Little),
            ("|u1", Dtype::U8, ByteOrder::Little),
            ("<i8", Dtype::I64, ByteOrder::Little),
            (">u2", Dtype::U16, ByteOrder::Big),
            ("=f4", Dtype::F32, ByteOrder::Little),
            ("<f2", Dtype::F16, ByteOrder::Little),
            (">U3", Dtype::Text { chars: 3 }, ByteOrder::Big),
            ("float64", Dtype::F64, ByteOrder::Little),
        ] {
            assert_eq!(Dtype::parse(text), Ok((dtype, order)), "{text}");
        }
        for (dtype, ..) in NUMBERS {
            assert_eq!(Dtype::parse(&dtype.descr()), Ok((dtype, ByteOrder::Little)));
        }
        assert_eq!(Dtype::Text { chars: 7 }.descr(), "<U7");
        assert_eq!(Dtype::U8.descr(), "|u1");
    }

    #[test]
    fn what_has_no_plain_elements_is_refused() {
        assert_eq!(Dtype::parse("|O"), Err(DtypeError::Object));
        assert_eq!(Dtype::parse("O8"), Err(DtypeError::Object));
        assert_eq!(Dtype::parse("|V12"), Err(DtypeError::Structured));
        let unknown =
            ["", "<", "f4", "|f4", "<c8", "<f16", "<M8[ns]", "<f", "<f-4", "<é4", "é", "<U-1"];
        for text in unknown {
            assert_eq!(Dtype::parse(text), Err(DtypeError::Unknown(text.to_owned())));
        }
    }
}
