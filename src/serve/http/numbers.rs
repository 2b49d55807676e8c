//! Numbers in a request, alone or in lists of lists, read without trust in how many there are.

use std::fmt;

use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// More than any noise or state has.
const MAX_VALUES: usize = 1 << 16;
/// Lists within lists: a batch, rows, and columns.
const MAX_DEPTH: usize = 3;

/// Numbers with the shape that they came in, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    pub values: Vec<f64>,
    /// Length of the lists of each depth; empty for a number that is in no list.
    pub shape: Vec<usize>,
    /// The lists of one depth are not of one length, or numbers stand beside lists.
    pub ragged: bool,
    /// Depth at which numbers stand.
    leaves: Option<usize>,
}

impl Numbers {
    /// The shape for people: `[2, 7]`.
    pub fn described(&self) -> String {
        if self.ragged {
            "lists of different lengths".to_owned()
        } else {
            format!("{:?}", self.shape)
        }
    }

    /// The values, if the shape is one of these.
    pub fn of_shape(&self, shapes: &[&[usize]]) -> Option<&[f64]> {
        let fits = !self.ragged && shapes.contains(&self.shape.as_slice());
        fits.then_some(self.values.as_slice())
    }

    fn leaf<E: Error>(&mut self, depth: usize, value: f64) -> Result<(), E> {
        if self.values.len() == MAX_VALUES {
            return Err(E::custom(format!("more than {MAX_VALUES} numbers")));
        }
        self.ragged |= *self.leaves.get_or_insert(depth) != depth || depth != self.shape.len();
        self.values.push(value);
        Ok(())
    }

    fn list(&mut self, depth: usize, length: usize) {
        if self.shape[depth] == usize::MAX {
            self.shape[depth] = length;
        }
        self.ragged |= self.shape[depth] != length;
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut numbers = Self::default();
        Level { depth: 0, numbers: &mut numbers }.deserialize(deserializer)?;
        Ok(numbers)
    }
}

/// What stands inside so many lists.
struct Level<'a> {
    depth: usize,
    numbers: &'a mut Numbers,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.depth == 0 {
            "a list of numbers"
        } else {
            "a number or a list of numbers"
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        if self.depth == 0 {
            return Err(E::invalid_type(serde::de::Unexpected::Float(value), &self));
        }
        self.numbers.leaf(self.depth, value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if self.depth == MAX_DEPTH {
            return Err(A::Error::custom(format!("lists are nested deeper than {MAX_DEPTH}")));
        }
        let depth = self.depth;
        // A list at a depth where numbers were found is seen as ragged by `leaf`, or here.
        if self.numbers.shape.len() == depth {
            self.numbers.ragged |= self.numbers.leaves.is_some();
            self.numbers.shape.push(usize::MAX);
        }
        let mut length = 0;
        while items.next_element_seed(Level { depth: depth + 1, numbers: self.numbers })?.is_some()
        {
            length += 1;
        }
        self.numbers.list(depth, length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Numbers, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn shapes_are_those_of_the_lists() {
        for (text, shape, values) in [
            ("[]", &[0][..], 0),
            ("[1, 2.5, -3]", &[3], 3),
            ("[[1, 2, 3]]", &[1, 3], 3),
            ("[[1, 2], [3, 4], [5, 6]]", &[3, 2], 6),
            ("[[[1], [2]]]", &[1, 2, 1], 2),
            ("[[], []]", &[2, 0], 0),
        ] {
            let numbers = read(text).expect(text);
            assert!(!numbers.ragged, "{text}");
            assert_eq!((numbers.shape.as_slice(), numbers.values.len()), (shape, values), "{text}");
        }
    }

    #[test]
    fn lists_of_different_lengths_and_depths_are_ragged() {
        for text in
            ["[[1], [2, 3]]", "[1, [2]]", "[[1], 2]", "[[[1]], [2]]", "[[2], [[1]]]", "[[], [1]]"]
        {
            assert!(read(text).expect(text).ragged, "{text}");
        }
    }

    #[test]
    fn what_is_no_list_of_numbers_is_refused() {
        for text in ["1", "true", "[true]", "[null]", "[\"1\"]", "{}", "[{}]", "[[[[1]]]]"] {
            read(text).expect_err(text);
        }
        let many = format!("[{}1]", "0,".repeat(MAX_VALUES));
        assert!(read(&many).expect_err("many").contains("more than 65536 numbers"));
    }
}
