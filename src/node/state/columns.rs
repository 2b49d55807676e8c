//! `std_msgs/msg/Float64MultiArray` to a state group, by the names of its columns.

use std::collections::HashSet;

use super::super::messages::Float64MultiArray;
use super::super::nearest::{hint, nearest};

/// Which columns make up a state group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMap {
    /// In the checkpoint's order.
    columns: Vec<String>,
    /// All columns of the message, in its order; empty where the message names them itself.
    layout: Vec<String>,
}

/// Why names cannot be mapped, or a message is not a sample of the group.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ColumnError {
    #[error("there is an empty column name")]
    EmptyName,
    #[error("column '{0}' is named twice")]
    NamedTwice(String),
    #[error("column '{column}' is missing{}; there are: {}", hint(.nearest), .names.join(", "))]
    Missing { column: String, nearest: Option<String>, names: Vec<String> },
    #[error(
        "nothing names its columns: name them all in the parameter `layout`, in the message's order, or have the \
         publisher label them"
    )]
    NoNames,
    #[error("it labels its columns {}, but the parameter `layout` says {}", .labels.join(", "), .layout.join(", "))]
    OtherLabels { labels: Vec<String>, layout: Vec<String> },
    #[error("it has {found} values for the {} columns {}", .names.len(), .names.join(", "))]
    Length { found: usize, names: Vec<String> },
    #[error("its layout has dimensions of {sizes:?} values; columns are one dimension")]
    Shape { sizes: Vec<u32> },
    #[error("its data_offset is {offset}, but it has {found} values")]
    Offset { offset: u32, found: usize },
    #[error("column '{column}' is {value}, not a finite number")]
    NotFinite { column: String, value: f64 },
}

impl ColumnMap {
    /// # Errors
    /// A name that is empty or stands twice, or a column that `layout`, if it is given, does not have.
    pub fn new(columns: Vec<String>, layout: Vec<String>) -> Result<Self, ColumnError> {
        check_names(&columns)?;
        check_names(&layout)?;
        if !layout.is_empty() {
            places(&columns, &layout)?;
        }
        Ok(Self { columns, layout })
    }

    /// Column names in the group's order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The group's values.
    ///
    /// # Errors
    /// See [`ColumnError`]. Nothing is taken by position unless `layout` names every position.
    pub fn read(&self, message: &Float64MultiArray) -> Result<Vec<f64>, ColumnError> {
        let found = message.data.len();
        let data = usize::try_from(message.data_offset)
            .ok()
            .and_then(|offset| message.data.get(offset..))
            .ok_or(ColumnError::Offset { offset: message.data_offset, found })?;
        let names = match labels(message)? {
            None if self.layout.is_empty() => return Err(ColumnError::NoNames),
            None => self.layout.clone(),
            Some(labels) if self.layout.is_empty() || labels == self.layout => labels,
            Some(labels) => {
                return Err(ColumnError::OtherLabels { labels, layout: self.layout.clone() });
            }
        };
        if data.len() != names.len() {
            return Err(ColumnError::Length { found: data.len(), names });
        }
        let places = places(&self.columns, &names)?;
        let values: Vec<f64> = places.into_iter().map(|place| data[place]).collect();
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => {
                let (column, value) = (self.columns[at].clone(), values[at]);
                Err(ColumnError::NotFinite { column, value })
            }
        }
    }
}

fn check_names(names: &[String]) -> Result<(), ColumnError> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return Err(ColumnError::EmptyName);
        }
        if !seen.insert(name) {
            return Err(ColumnError::NamedTwice(name.clone()));
        }
    }
    Ok(())
}

/// Where each of `columns` stands in `names`.
fn places(columns: &[String], names: &[String]) -> Result<Vec<usize>, ColumnError> {
    let place = |column: &String| {
        names.iter().position(|name| name == column).ok_or_else(|| ColumnError::Missing {
            column: column.clone(),
            nearest: nearest(column, names.iter().map(String::as_str)).map(str::to_owned),
            names: names.to_vec(),
        })
    };
    columns.iter().map(place).collect()
}

/// The names that the message gives its columns: the label of each of several dimensions of size 1, or the label of the
/// one dimension, split at its commas. `None` if its labels name no columns.
fn labels(message: &Float64MultiArray) -> Result<Option<Vec<String>>, ColumnError> {
    let sizes: Vec<u32> = message.dimensions.iter().map(|dimension| dimension.size).collect();
    if sizes.iter().filter(|size| **size > 1).count() > 1 {
        return Err(ColumnError::Shape { sizes });
    }
    let labels = message.dimensions.iter().map(|dimension| dimension.label.trim());
    let names: Vec<String> = match labels.collect::<Vec<_>>().as_slice() {
        [one] => one.split(',').map(|name| name.trim().to_owned()).collect(),
        several => several.iter().map(|&label| label.to_owned()).collect(),
    };
    let columns: u64 = match sizes.as_slice() {
        [one] => u64::from(*one),
        several => several.len() as u64,
    };
    let each_has_one = sizes.len() == 1 || sizes.iter().all(|size| *size == 1);
    if !each_has_one || names.len() as u64 != columns || names.iter().any(String::is_empty) {
        return Ok(None);
    }
    check_names(&names)?;
    Ok((!names.is_empty()).then_some(names))
}

#[cfg(test)]
mod tests {
    use super::super::super::messages::Dimension;
    use super::*;
    use proptest::prelude::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn message(labels: &[(&str, u32)], data: &[f64]) -> Float64MultiArray {
        let dimension = |&(label, size): &(&str, u32)| Dimension { label: label.to_owned(), size };
        Float64MultiArray {
            dimensions: labels.iter().map(dimension).collect(),
            data_offset: 0,
            data: data.to_vec(),
        }
    }

    fn map(layout: &[&str]) -> ColumnMap {
        ColumnMap::new(owned(&["height", "yaw"]), owned(layout)).expect("valid")
    }

    #[test]
    fn columns_are_found_by_name() {
        let declared = map(&["x", "yaw", "height"]);
        let expected = Ok(vec![3.0, 2.0]);
        assert_eq!(declared.read(&message(&[], &[1.0, 2.0, 3.0])), expected);
        // A label that does not name every column names the dimension.
        for label in ["", "state", "a,b"] {
            assert_eq!(declared.read(&message(&[(label, 3)], &[1.0, 2.0, 3.0])), expected);
        }
        let labelled = map(&[]);
        let each = message(&[("yaw", 1), ("x", 1), ("height", 1)], &[2.0, 1.0, 3.0]);
        assert_eq!(labelled.read(&each), expected);
        let together = message(&[("height, x , yaw", 3)], &[3.0, 1.0, 2.0]);
        assert_eq!(labelled.read(&together), expected);
        let mut shifted = together;
        (shifted.data_offset, shifted.data) = (2, vec![9.0, 9.0, 3.0, 1.0, 2.0]);
        assert_eq!(labelled.read(&shifted), expected);
    }

    #[test]
    fn case_75_nothing_is_taken_by_position_alone() {
        let unnamed = message(&[("state", 2)], &[1.0, 2.0]);
        assert_eq!(map(&[]).read(&unnamed), Err(ColumnError::NoNames));
        assert_eq!(map(&[]).read(&message(&[], &[])), Err(ColumnError::NoNames));
        let declared = map(&["height", "yaw"]);
        let swapped = message(&[("yaw,height", 2)], &[1.0, 2.0]);
        assert!(matches!(declared.read(&swapped), Err(ColumnError::OtherLabels { .. })));
    }

    #[test]
    fn lengths_and_shapes_have_to_agree() {
        let declared = map(&["height", "yaw"]);
        for data in [&[][..], &[1.0], &[1.0, 2.0, 3.0]] {
            let error = declared.read(&message(&[], data)).expect_err("length");
            assert!(matches!(error, ColumnError::Length { .. }), "{error}");
        }
        let square = message(&[("rows", 2), ("columns", 2)], &[1.0; 4]);
        assert!(matches!(declared.read(&square), Err(ColumnError::Shape { .. })));
        let mut beyond = message(&[], &[1.0, 2.0]);
        beyond.data_offset = 3;
        assert!(matches!(declared.read(&beyond), Err(ColumnError::Offset { .. })));
        let error = declared.read(&message(&[], &[1.0, f64::NAN])).expect_err("not finite");
        assert!(error.to_string().contains("column 'yaw' is NaN"), "{error}");
    }

    #[test]
    fn names_are_checked_at_the_start() {
        let refusal = |columns: &[&str], layout: &[&str]| {
            ColumnMap::new(owned(columns), owned(layout)).expect_err("names").to_string()
        };
        assert!(refusal(&["yaw", "yaw"], &[]).contains("named twice"));
        assert!(refusal(&["yaw"], &["yaw", ""]).contains("empty column name"));
        assert!(refusal(&["jaw"], &["yaw", "x"]).contains("did you mean 'yaw'?"));
    }

    proptest! {
        #[test]
        fn the_order_of_columns_changes_nothing(
            columns in Just(vec![("height", 3.0), ("yaw", 2.0), ("x", 1.0), ("y", 0.5)]).prop_shuffle(),
        ) {
            let labels: Vec<_> = columns.iter().map(|(name, _)| (*name, 1)).collect();
            let data: Vec<f64> = columns.iter().map(|(_, value)| *value).collect();
            prop_assert_eq!(map(&[]).read(&message(&labels, &data)), Ok(vec![3.0, 2.0]));
        }

        #[test]
        fn never_panics(
            labels in prop::collection::vec(("[a-c,]{0,4}|yaw|height", 0u32..4), 0..5),
            data in prop::collection::vec(any::<f64>(), 0..5),
            offset in 0u32..6,
        ) {
            let labels: Vec<_> = labels.iter().map(|(label, size)| (label.as_str(), *size)).collect();
            let mut message = message(&labels, &data);
            message.data_offset = offset;
            let _ = map(&[]).read(&message);
            let _ = map(&["height", "yaw"]).read(&message);
        }
    }
}
