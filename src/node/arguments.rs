//! A ROS node made of this process's arguments, and the parameters that they give it.

use std::panic;

use anyhow::{Context as _, Result};
use r2r::{Node, ParameterValue};

use super::params::Value;
use super::remap::unreadable_params_file;
use super::runtime::locked;
use crate::cli::WrongUsage;

/// A node of this name, unless the arguments give another.
///
/// rcl's own complaint about bad arguments goes to standard error; the panic that follows is turned into an error.
///
/// # Errors
/// Arguments that ROS refuses.
pub fn create_node(name: &str) -> Result<Node> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(problem) = unreadable_params_file(&arguments) {
        return Err(WrongUsage(problem).into());
    }
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let created = panic::catch_unwind(|| {
        r2r::Context::create().and_then(|context| Node::create(context, name, ""))
    });
    panic::set_hook(hook);
    match created {
        Ok(node) => node.context("the ROS 2 node could not be created"),
        Err(_) => Err(WrongUsage(
            "ROS 2 refused the arguments after --ros-args (see above); check their spelling and the parameter file"
                .to_owned(),
        )
        .into()),
    }
}

/// Parameters from files and from the command line.
pub fn overrides(node: &Node) -> Vec<(String, Value)> {
    let given = locked(&node.params);
    given.iter().map(|(name, parameter)| (name.clone(), value(&parameter.value))).collect()
}

fn value(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Bool(value) => Value::Bool(*value),
        ParameterValue::Integer(value) => Value::Integer(*value),
        ParameterValue::Double(value) => Value::Double(*value),
        ParameterValue::String(value) => Value::Text(value.clone()),
        ParameterValue::StringArray(values) => Value::Texts(values.clone()),
        ParameterValue::IntegerArray(values) => Value::Integers(values.clone()),
        ParameterValue::DoubleArray(values) => Value::Doubles(values.clone()),
        other => Value::Other(other.type_name()),
    }
}
