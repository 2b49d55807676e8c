//! The parameters of one node and their values.

use std::fmt;

use super::super::nearest::{hint, nearest};
use super::table::{Declared, Names, Scope, TABLE, TopicQos};
use super::value::{Kind, Range, Value};

/// Why a parameter does not have the value that it was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    #[error("parameter '{name}' does not exist{}", hint(.nearest))]
    Unknown { name: String, nearest: Option<String> },
    #[error("parameter '{name}' is of type {}, {given} is of type {found}{}", kind.name(), quoting_hint(*.kind))]
    Type { name: String, kind: Kind, given: String, found: &'static str },
    #[error("parameter '{name}' is {range}, not {value}")]
    Range { name: String, range: Range, value: Value },
    #[error(
        "parameter '{name}' cannot be changed while the node runs; set it in the parameter file or with -p, and start the \
         node again"
    )]
    ReadOnly { name: String },
    #[error("parameter '{name}' {reason}")]
    Unusable { name: String, reason: String },
}

fn quoting_hint(kind: Kind) -> &'static str {
    if kind == Kind::Text { "; put it in quotes" } else { "" }
}

/// Everything that is wrong with the parameters, one line each.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamErrors(pub Vec<ParamError>);

impl std::error::Error for ParamErrors {}

impl fmt::Display for ParamErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// Overrides of topics begin with it.
const QOS_OVERRIDES: &str = "qos_overrides.";

/// Declared parameters with their values, in the order of the table.
#[derive(Clone, Debug)]
pub struct Params {
    declared: Vec<(Declared, Value)>,
    /// Overrides of cameras and groups.
    of_robot: Vec<(String, Value)>,
    /// Overrides of topics.
    of_topics: Vec<(String, Value)>,
}

impl Params {
    /// Declares the parameters of the node. Overrides that can be of a camera or a group wait for
    /// [`Params::declare_robot`], those of topics for [`Params::declare_topics`].
    ///
    /// # Errors
    /// Every override that has no such parameter, or whose value does not fit.
    pub fn new(overrides: Vec<(String, Value)>) -> Result<Self, ParamErrors> {
        let of_robot = |name: &str| {
            TABLE.iter().any(|entry| entry.scope != Scope::Node && entry.matches(name))
        };
        let (of_topics, overrides): (Vec<_>, Vec<_>) =
            overrides.into_iter().partition(|(name, _)| name.starts_with(QOS_OVERRIDES));
        let (of_robot, overrides) = overrides.into_iter().partition(|(name, _)| of_robot(name));
        let mut params = Self { declared: Vec::new(), of_robot, of_topics };
        params.declare(&Names::default(), |scope| scope == Scope::Node, overrides)?;
        Ok(params)
    }

    /// Declares the parameters of the robot's cameras and groups, in place of those of another one.
    ///
    /// # Errors
    /// Every override that is left without a parameter, or whose value does not fit.
    pub fn declare_robot(&mut self, names: &Names) -> Result<(), ParamErrors> {
        self.declared.retain(|(declared, _)| declared.entry.scope == Scope::Node);
        self.declare(names, |scope| scope != Scope::Node, self.of_robot.clone())
    }

    fn declare(
        &mut self,
        names: &Names,
        scope: impl Fn(Scope) -> bool,
        overrides: Vec<(String, Value)>,
    ) -> Result<(), ParamErrors> {
        let entries = TABLE.iter().filter(|entry| scope(entry.scope));
        for declared in entries.flat_map(|entry| entry.declared(names)) {
            let value = declared.entry.default.value(&declared.key);
            self.declared.push((declared, value));
        }
        self.take_over(overrides)
    }

    /// Declares the quality of service of topics, in place of those of before; the robot's parameters are declared.
    ///
    /// # Errors
    /// Every override of a topic that the node does not have, or whose value does not fit.
    pub fn declare_topics(&mut self, topics: &[TopicQos]) -> Result<(), ParamErrors> {
        let of_topic = |scope| matches!(scope, Scope::Subscription | Scope::Publisher);
        self.declared.retain(|(declared, _)| !of_topic(declared.entry.scope));
        for (declared, value) in topics.iter().flat_map(TopicQos::declared) {
            // Two inputs can share a topic.
            if self.get(&declared.name).is_none() {
                self.declared.push((declared, value));
            }
        }
        self.take_over(self.of_topics.clone())
    }

    fn take_over(&mut self, overrides: Vec<(String, Value)>) -> Result<(), ParamErrors> {
        let mut errors = Vec::new();
        for (name, value) in overrides {
            match self.checked(&name, value) {
                Ok((place, value)) => self.declared[place].1 = value,
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(ParamErrors(errors)) }
    }

    /// Name, description and value of every parameter.
    pub fn iter(&self) -> impl Iterator<Item = (&Declared, &Value)> {
        self.declared.iter().map(|(declared, value)| (declared, value))
    }

    /// The parameter of this name, if it is declared.
    pub fn get(&self, name: &str) -> Option<(&Declared, &Value)> {
        self.iter().find(|(declared, _)| declared.name == name)
    }

    /// Changes the values of a running node, all of them or none. Returns the names whose value is another one now.
    ///
    /// # Errors
    /// The first change that is not possible; then nothing is changed.
    pub fn set(&mut self, changes: Vec<(String, Value)>) -> Result<Vec<String>, ParamError> {
        let mut checked = Vec::with_capacity(changes.len());
        for (name, value) in changes {
            let (place, value) = self.checked(&name, value)?;
            let (declared, old) = &self.declared[place];
            if declared.entry.read_only && *old != value {
                return Err(ParamError::ReadOnly { name });
            }
            checked.push((place, value));
        }
        let mut changed = Vec::new();
        for (place, value) in checked {
            let (declared, old) = &mut self.declared[place];
            if *old != value {
                *old = value;
                changed.push(declared.name.clone());
            }
        }
        Ok(changed)
    }

    /// Where the parameter is, and `value` in its type.
    fn checked(&self, name: &str, value: Value) -> Result<(usize, Value), ParamError> {
        let Some(place) = self.declared.iter().position(|(declared, _)| declared.name == name)
        else {
            let known = self.declared.iter().map(|(declared, _)| declared.name.as_str());
            let rows = TABLE.iter().map(|entry| entry.name);
            let nearest = nearest(name, known.chain(rows)).map(str::to_owned);
            return Err(ParamError::Unknown { name: name.to_owned(), nearest });
        };
        let entry = self.declared[place].0.entry;
        let (given, found, kind) = (value.to_string(), value.type_name(), entry.default.kind());
        let Some(value) = entry.range.as_written(value).as_kind(kind) else {
            return Err(ParamError::Type { name: name.to_owned(), kind, given, found });
        };
        if !entry.range.contains(&value) {
            return Err(ParamError::Range { name: name.to_owned(), range: entry.range, value });
        }
        Ok((place, value))
    }
}

/// Values by name, for names and types of the table. A name that is not declared gives the type's empty value.
impl Params {
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Some((_, Value::Bool(true))))
    }

    pub fn integer(&self, name: &str) -> i64 {
        match self.get(name) {
            Some((_, &Value::Integer(value))) => value,
            _ => 0,
        }
    }

    pub fn double(&self, name: &str) -> f64 {
        match self.get(name) {
            Some((_, &Value::Double(value))) => value,
            _ => 0.0,
        }
    }

    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some((_, Value::Text(value))) => value,
            _ => "",
        }
    }

    pub fn texts(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some((_, Value::Texts(values))) => values,
            _ => &[],
        }
    }

    pub fn doubles(&self, name: &str) -> &[f64] {
        match self.get(name) {
            Some((_, Value::Doubles(values))) => values,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Names {
            cameras: owned(&["ego_view"]),
            state: owned(&["left_arm"]),
            action: owned(&["left_arm"]),
        }
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn declared(overrides: Vec<(&str, Value)>) -> Result<Params, ParamErrors> {
        let overrides =
            overrides.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut params = Params::new(overrides)?;
        params.declare_robot(&names())?;
        Ok(params)
    }

    #[test]
    fn defaults_and_overrides() {
        let params = declared(vec![
            ("rate_hz", Value::Double(7.5)),
            ("camera.ego_view.transport", text("compressed")),
            ("state.left_arm.joints", Value::Texts(vec!["a".to_owned(), "b".to_owned()])),
        ])
        .expect("valid");
        assert_eq!(params.double("rate_hz"), 7.5);
        assert_eq!(params.text("camera.ego_view.topic"), "camera/ego_view/image_raw");
        assert_eq!(params.text("camera.ego_view.transport"), "compressed");
        assert_eq!(params.texts("state.left_arm.joints"), ["a", "b"]);
        assert_eq!(params.texts("action.left_arm.joints"), [] as [&str; 0]);
        assert!(params.bool("trajectory"));
        assert_eq!(params.integer("seed"), -1);
    }

    #[test]
    fn every_default_is_in_its_range() {
        for (declared, value) in declared(vec![]).expect("defaults").iter() {
            assert!(declared.entry.range.contains(value), "{}", declared.name);
            assert!(!declared.entry.description.is_empty(), "{}", declared.name);
        }
    }

    #[test]
    fn typos_are_refused_with_the_nearest_name() {
        for (name, nearest) in [
            ("rate_Hz", "rate_hz"),
            ("instructions", "instruction"),
            ("camera.ego_veiw.topic", "camera.ego_view.topic"),
            ("state.left_arms.joints", "state.left_arm.joints"),
            ("camera.ego_view.topics", "camera.<key>.topic"),
        ] {
            let error = declared(vec![(name, text("x"))]).expect_err(name).to_string();
            assert_eq!(
                error,
                format!("parameter '{name}' does not exist; did you mean '{nearest}'?")
            );
        }
    }

    #[test]
    fn every_error_is_told_at_once() {
        let error = declared(vec![("rate_Hz", Value::Integer(1)), ("seed", Value::Integer(-2))])
            .expect_err("two");
        assert_eq!(error.0.len(), 2);
        assert_eq!(error.to_string().lines().count(), 2);
    }

    #[test]
    fn case_67_types_and_ranges() {
        for value in [Value::Double(2.7), text("4"), Value::Bool(true), Value::Other("not set")] {
            let error = declared(vec![("camera_max_age_ms", value)]).expect_err("type").to_string();
            assert!(error.contains("is of type integer"), "{error}");
        }
        for value in [0, -5, 60_001] {
            let error =
                declared(vec![("camera_max_age_ms", Value::Integer(value))]).expect_err("range");
            assert!(error.to_string().contains("1 to 60000"), "{error}");
        }
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e6] {
            assert!(declared(vec![("rate_hz", Value::Double(value))]).is_err());
        }
        let error = declared(vec![("timeline", text("now"))]).expect_err("choice").to_string();
        assert!(error.contains("one of 'stamp', 'receive', not 'now'"), "{error}");
        let error = declared(vec![("backend", text("tt"))]).expect_err("choice").to_string();
        assert!(error.contains("one of 'cpu', 'blackhole', 'sim', not 'tt'"), "{error}");
        let error =
            declared(vec![("instruction", Value::Integer(5))]).expect_err("type").to_string();
        assert!(error.contains("put it in quotes"), "{error}");
    }

    #[test]
    fn an_integer_is_taken_for_a_double() {
        let params = declared(vec![("rate_hz", Value::Integer(10))]).expect("coerced");
        assert_eq!(
            params.get("rate_hz").map(|(_, value)| value.clone()),
            Some(Value::Double(10.0))
        );
        let range = "state.left_arm.source_range";
        let params = declared(vec![(range, Value::Integers(vec![0, 100]))]).expect("coerced");
        assert_eq!(params.doubles(range), [0.0, 100.0]);
        let infinite = Value::Doubles(vec![0.0, f64::INFINITY]);
        assert!(declared(vec![(range, infinite)]).is_err());
    }

    fn with_topic(overrides: Vec<(&str, Value)>) -> Result<Params, ParamErrors> {
        let own = [
            ("reliability", text("best_effort")),
            ("durability", text("volatile")),
            ("history", text("keep_last")),
            ("depth", Value::Integer(5)),
        ];
        let topic = TopicQos { scope: Scope::Subscription, topic: "/tf".to_owned(), own };
        let mut params = declared(overrides)?;
        params.declare_topics(&[topic.clone(), topic])?;
        Ok(params)
    }

    #[test]
    fn case_26_topics_have_parameters_for_their_quality_of_service() {
        let name = |policy: &str| format!("qos_overrides./tf.subscription.{policy}");
        let reliable = name("reliability");
        let mut params = with_topic(vec![(&reliable, text("reliable"))]).expect("valid");
        assert_eq!(params.text(&reliable), "reliable");
        assert_eq!(params.text(&name("history")), "keep_last");
        assert_eq!(params.integer(&name("depth")), 5);
        assert_eq!(params.iter().filter(|(p, _)| p.name.starts_with("qos_overrides")).count(), 4);
        let change = vec![(reliable, text("best_effort"))];
        assert!(matches!(params.set(change), Err(ParamError::ReadOnly { .. })));
    }

    #[test]
    fn overrides_of_topics_that_do_not_fit_are_refused() {
        for (name, value, expected) in [
            (
                "qos_overrides./tf.subscription.reliabilty",
                text("reliable"),
                "did you mean 'qos_overrides./tf.subscription.reliability'?",
            ),
            (
                "qos_overrides./tg.subscription.depth",
                Value::Integer(1),
                "did you mean 'qos_overrides./tf.subscription.depth'?",
            ),
            ("qos_overrides./tf.subscription.durability", text("latched"), "'transient_local'"),
            ("qos_overrides./tf.subscription.depth", Value::Integer(0), "is 1 to 10000, not 0"),
            ("qos_overrides./tf.subscription.depth", text("5"), "is of type integer"),
        ] {
            let error = with_topic(vec![(name, value)]).expect_err(name).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn changes_at_run_time_are_all_or_none() {
        let mut params = declared(vec![]).expect("defaults");
        let change = |name: &str, value| (name.to_owned(), value);
        let changed = params
            .set(vec![change("instruction", text("wave")), change("seed", Value::Integer(-1))]);
        assert_eq!(changed, Ok(vec!["instruction".to_owned()]));
        assert_eq!(params.text("instruction"), "wave");

        let refused = params
            .set(vec![change("instruction", text("stop")), change("seed", Value::Integer(-9))]);
        assert!(refused.expect_err("out of range").to_string().contains("-1 or more"));
        assert_eq!(params.text("instruction"), "wave");

        let refused =
            params.set(vec![change("snapshot", text("/elsewhere"))]).expect_err("read-only");
        assert_eq!(refused, ParamError::ReadOnly { name: "snapshot".to_owned() });
        assert!(refused.to_string().contains("start the node again"), "{refused}");
        assert_eq!(params.set(vec![change("snapshot", text(""))]), Ok(vec![]));
    }
}
