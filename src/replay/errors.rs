//! How far predicted values are from others.

use serde::Serialize;

/// Errors over a number of values. Nothing but `values` is known where there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Errors {
    pub values: u64,
    /// Mean of the squares.
    pub mse: Option<f64>,
    /// Mean of the absolute values.
    pub mae: Option<f64>,
    pub max_abs: Option<f64>,
    /// Where the largest one is.
    pub max_at: Option<Place>,
}

/// A row of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Number of the chunk, from 0.
    pub chunk: usize,
    /// From 0.
    pub row: usize,
}

/// Adds up errors in the order in which they come, so that the result is always the same.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    values: u64,
    squares: f64,
    absolutes: f64,
    largest: Option<(f64, Place)>,
}

impl Sums {
    pub fn add(&mut self, error: f64, place: Place) {
        let size = error.abs();
        self.values += 1;
        self.squares += error * error;
        self.absolutes += size;
        if self.largest.is_none_or(|(largest, _)| size > largest) {
            self.largest = Some((size, place));
        }
    }

    pub fn errors(&self) -> Errors {
        let mean = |sum: f64| (self.values > 0).then(|| sum / self.values as f64);
        Errors {
            values: self.values,
            mse: mean(self.squares),
            mae: mean(self.absolutes),
            max_abs: self.largest.map(|(size, _)| size),
            max_at: self.largest.map(|(_, place)| place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_the_largest() {
        let mut sums = Sums::default();
        assert_eq!(sums.errors(), Errors::default());
        for (row, error) in [1.0, -3.0, 2.0, 3.0].into_iter().enumerate() {
            sums.add(error, Place { chunk: 7, row });
        }
        let expected = Errors {
            values: 4,
            mse: Some(23.0 / 4.0),
            mae: Some(9.0 / 4.0),
            max_abs: Some(3.0),
            max_at: Some(Place { chunk: 7, row: 1 }),
        };
        assert_eq!(sums.errors(), expected);
    }
}
