//! What a replay is expected to measure: `--max-mae` and `--expect`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::node::nearest::{hint, nearest};

/// What is measured, by name.
pub type Measures = BTreeMap<String, f64>;

/// `KEY OP VALUE`, such as `chunks>=100`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    key: String,
    relation: Relation,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtMost,
    AtLeast,
    Below,
    Above,
    Equal,
    Other,
}

impl Relation {
    /// Longer signs first, since `<` begins `<=`.
    const ALL: [(&'static str, Relation); 6] = [
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("==", Relation::Equal),
        ("!=", Relation::Other),
        ("<", Relation::Below),
        (">", Relation::Above),
    ];

    fn sign(self) -> &'static str {
        Self::ALL.iter().find(|(_, relation)| *relation == self).map_or("", |(sign, _)| sign)
    }

    fn holds(self, measured: f64, limit: f64) -> bool {
        match self {
            Relation::AtMost => measured <= limit,
            Relation::AtLeast => measured >= limit,
            Relation::Below => measured < limit,
            Relation::Above => measured > limit,
            Relation::Equal => measured == limit,
            Relation::Other => measured != limit,
        }
    }
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form =
            || format!("'{text}' is not KEY OP VALUE, such as chunks>=100 or 'refusals == 0'");
        let at = text.find(['<', '>', '=', '!']).ok_or_else(form)?;
        let (key, rest) = text.split_at(at);
        let (sign, relation) =
            Relation::ALL.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(form)?;
        let limit: f64 = rest[sign.len()..].trim().parse().map_err(|_| form())?;
        let key = key.trim();
        if key.is_empty() || !limit.is_finite() {
            return Err(form());
        }
        Ok(Self { key: key.to_owned(), relation, limit })
    }
}

impl Bound {
    /// The bound of `--max-mae [GROUP=]X`, over the rows that are executed.
    ///
    /// # Errors
    /// Something else than that.
    pub fn max_mae(text: &str) -> Result<Self, String> {
        let (group, limit) = match text.split_once('=') {
            Some((group, limit)) => (Some(group.trim()), limit),
            None => (None, text),
        };
        let limit =
            limit.trim().parse().ok().filter(|limit: &f64| limit.is_finite() && *limit >= 0.0);
        let limit = limit
            .ok_or_else(|| format!("'{text}' is not [GROUP=]X with a number X of 0 or more"))?;
        let key = match group {
            Some("") => return Err(format!("'{text}': the name of the group is missing")),
            Some(group) => format!("mae.{group}"),
            None => "mae".to_owned(),
        };
        Ok(Self { key, relation: Relation::AtMost, limit })
    }

    /// Holds the bound against what was measured.
    ///
    /// # Errors
    /// Nothing of this name was measured.
    pub fn checked(&self, measures: &Measures) -> Result<Checked, String> {
        let Some(&measured) = measures.get(&self.key) else {
            let near = nearest(&self.key, measures.keys().map(String::as_str)).map(str::to_owned);
            return Err(format!(
                "'{}' was not measured in this replay{}; report.json lists all `measures`",
                self.key,
                hint(&near)
            ));
        };
        let kept = self.relation.holds(measured, self.limit);
        Ok(Checked { bound: self.to_string(), measured, kept })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.key, self.relation.sign(), self.limit)
    }
}

/// A bound and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    pub bound: String,
    pub measured: f64,
    pub kept: bool,
}

impl Checked {
    /// Why it is broken.
    pub fn complaint(&self) -> String {
        format!("{} is expected, and {} was measured", self.bound, self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_held() {
        let measures = Measures::from([("chunks".to_owned(), 12.0), ("mae.arm".to_owned(), 0.25)]);
        for (text, kept) in [
            ("chunks>=12", true),
            ("chunks > 12", false),
            ("chunks == 12", true),
            ("chunks!=12", false),
            ("chunks<=11.5", false),
            ("mae.arm < 0.3", true),
        ] {
            let checked = text.parse::<Bound>().expect(text).checked(&measures).expect("measured");
            assert_eq!(checked.kept, kept, "{text}");
        }
        let broken = Bound::max_mae("arm=0.1").unwrap().checked(&measures).unwrap();
        assert_eq!(broken.complaint(), "mae.arm <= 0.1 is expected, and 0.25 was measured");
        let unknown = "chunk>=1".parse::<Bound>().unwrap().checked(&measures).unwrap_err();
        assert!(
            unknown.contains("'chunk'") && unknown.contains("did you mean 'chunks'?"),
            "{unknown}"
        );
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        for text in ["chunks", ">=3", "chunks=>3", "chunks>=many", "chunks>=NaN", "chunks=3"] {
            assert!(text.parse::<Bound>().is_err(), "{text}");
        }
        for text in ["-1", "x", "arm=", "=0.1", "NaN"] {
            assert!(Bound::max_mae(text).is_err(), "{text}");
        }
    }
}
