//! The parameter services, answered from the node's one table: types, ranges, descriptions, read-only.
//!
//! They are our own because r2r's know neither ranges nor read-only parameters nor `/parameter_events`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use r2r::rcl_interfaces::msg::{
    FloatingPointRange, IntegerRange, ListParametersResult, Parameter, ParameterDescriptor,
    ParameterEvent, ParameterType, ParameterValue as ValueMessage, SetParametersResult,
};
use r2r::rcl_interfaces::srv::{
    DescribeParameters, GetParameterTypes, GetParameters, ListParameters, SetParameters,
    SetParametersAtomically,
};
use r2r::{Node, Publisher, QosProfile, ServiceRequest, WrappedServiceTypeSupport};
use tokio::sync::mpsc::UnboundedSender;
use tracing::{info, warn};

use super::core::Core;
use super::engine::Event;
use super::graph::PARAMETER_EVENTS;
use super::instruction::{INSTRUCTION, check_given};
use super::params::{Declared, Kind, ParamError, Params, Range, Value};
use super::requests::service;
use super::runtime::{Shared, locked, time_message};
use super::spin::NodeHandle;

/// Answers a service until the node ends.
pub type Task = BoxFuture<'static, ()>;

/// Creates the services.
///
/// # Errors
/// What rcl reports.
pub fn serve(
    node: &mut Node,
    spinner: &NodeHandle,
    core: &Arc<Core>,
    changes: &Arc<ParamChanges>,
) -> r2r::Result<Vec<Task>> {
    let node_name = node.name()?;
    let name = |service: &str| format!("{node_name}/{service}");
    let mut tasks: Vec<Task> = Vec::new();

    let requests = service::<GetParameters::Service>(node, spinner, &name("get_parameters"))?;
    let known = core.clone();
    tasks.push(Box::pin(answer(requests, move |request: &GetParameters::Request| {
        let params = locked(&known.params);
        let value = |name: &String| params.get(name).map(|(_, value)| value_message(value));
        let values = request.names.iter().map(|name| value(name).unwrap_or_default()).collect();
        GetParameters::Response { values }
    })));

    let requests =
        service::<GetParameterTypes::Service>(node, spinner, &name("get_parameter_types"))?;
    let known = core.clone();
    tasks.push(Box::pin(answer(requests, move |request: &GetParameterTypes::Request| {
        let params = locked(&known.params);
        let kind = |name: &String| params.get(name).map(|(declared, _)| type_number(declared));
        let types = request.names.iter().map(|name| kind(name).unwrap_or(0)).collect();
        GetParameterTypes::Response { types }
    })));

    let requests =
        service::<DescribeParameters::Service>(node, spinner, &name("describe_parameters"))?;
    let known = core.clone();
    tasks.push(Box::pin(answer(requests, move |request: &DescribeParameters::Request| {
        let params = locked(&known.params);
        let describe = |name: &String| params.get(name).map(|(declared, _)| descriptor(declared));
        let unknown =
            |name: &String| ParameterDescriptor { name: name.clone(), ..Default::default() };
        let names = request.names.iter();
        let descriptors =
            names.map(|name| describe(name).unwrap_or_else(|| unknown(name))).collect();
        DescribeParameters::Response { descriptors }
    })));

    let requests = service::<ListParameters::Service>(node, spinner, &name("list_parameters"))?;
    let known = core.clone();
    tasks.push(Box::pin(answer(requests, move |request: &ListParameters::Request| {
        ListParameters::Response {
            result: list(&locked(&known.params), &request.prefixes, request.depth),
        }
    })));

    let requests = service::<SetParameters::Service>(node, spinner, &name("set_parameters"))?;
    let setter = changes.clone();
    tasks.push(Box::pin(answer(requests, move |request: &SetParameters::Request| {
        let one = |parameter: &Parameter| setter.set_all(std::slice::from_ref(parameter));
        SetParameters::Response { results: request.parameters.iter().map(one).collect() }
    })));

    let requests = service::<SetParametersAtomically::Service>(
        node,
        spinner,
        &name("set_parameters_atomically"),
    )?;
    let setter = changes.clone();
    tasks.push(Box::pin(answer(requests, move |request: &SetParametersAtomically::Request| {
        SetParametersAtomically::Response { result: setter.set_all(&request.parameters) }
    })));
    Ok(tasks)
}

/// Answers every request; a caller that is gone already is no concern of the node.
pub async fn answer<S>(
    mut requests: impl Stream<Item = ServiceRequest<S>> + Unpin,
    respond: impl Fn(&S::Request) -> S::Response,
) where
    S: WrappedServiceTypeSupport + 'static,
{
    while let Some(request) = requests.next().await {
        let response = respond(&request.message);
        if let Err(error) = request.respond(response) {
            warn!("a service answer could not be sent: {error}");
        }
    }
}

/// What it takes to change parameters and to tell everybody.
pub struct ParamChanges {
    core: Arc<Core>,
    /// Hears of a new instruction.
    engine: UnboundedSender<Event>,
    /// A publisher may be used by one thread at a time.
    events: Mutex<Publisher<ParameterEvent>>,
}

impl ParamChanges {
    /// # Errors
    /// What rcl reports.
    pub fn new(
        node: &mut Node,
        core: &Arc<Core>,
        engine: UnboundedSender<Event>,
    ) -> r2r::Result<Self> {
        let events = node.create_publisher(PARAMETER_EVENTS, QosProfile::parameter_events())?;
        Ok(Self { core: core.clone(), engine, events: Mutex::new(events) })
    }

    /// Changes all of these or none, and publishes what has changed.
    ///
    /// # Errors
    /// The first change that is not possible.
    pub fn set(&self, changes: Vec<(String, Value)>) -> Result<(), ParamError> {
        // Until a policy is configured, nobody knows what its prompt can hold; then it is checked.
        if let Some(shared) = self.core.configured() {
            for (name, value) in &changes {
                if let (INSTRUCTION, Value::Text(instruction)) = (name.as_str(), value) {
                    check_given(&shared.instruction_check, instruction)?;
                }
            }
        }
        self.set_checked(changes)
    }

    /// As [`Self::set`], for an instruction that was checked before.
    pub fn set_checked(&self, changes: Vec<(String, Value)>) -> Result<(), ParamError> {
        let instructs = changes.iter().any(|(name, _)| name == INSTRUCTION);
        let changed = match self.core.configured() {
            None => locked(&self.core.params).set(changes)?,
            Some(shared) => self.set_while_configured(&shared, changes)?,
        };
        self.announce(changed);
        if instructs {
            // An engine that is gone needs none.
            let _ = self.engine.send(Event::InstructionSet);
        }
        Ok(())
    }

    /// Another instruction is another goal, unless it is for the time after the goal of a client.
    fn set_while_configured(
        &self,
        shared: &Shared,
        changes: Vec<(String, Value)>,
    ) -> Result<Vec<String>, ParamError> {
        // Held throughout, so that nothing is predicted from the new instruction and the old goal's frames.
        let mut sensors = locked(&shared.sensors);
        let changed = locked(&self.core.params).set(changes)?;
        let other = changed.iter().any(|name| name == INSTRUCTION);
        if other && !self.core.goal_runs.load(Ordering::Acquire) {
            sensors.history.begin_goal(self.core.clock.now());
        }
        Ok(changed)
    }

    fn set_all(&self, parameters: &[Parameter]) -> SetParametersResult {
        let changes = parameters.iter().map(|p| (p.name.clone(), value_of(&p.value))).collect();
        match self.set(changes) {
            Ok(()) => SetParametersResult { successful: true, reason: String::new() },
            Err(error) => SetParametersResult { successful: false, reason: error.to_string() },
        }
    }

    fn announce(&self, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let changed_parameters = {
            let params = locked(&self.core.params);
            let known = names.iter().filter_map(|name| params.get(name));
            known
                .map(|(declared, value)| {
                    info!("parameter {} is {value} now", declared.name);
                    Parameter { name: declared.name.clone(), value: value_message(value) }
                })
                .collect()
        };
        let stamp = time_message(self.core.clock.now().ros_ns);
        let node = self.core.node_name.clone();
        let event = ParameterEvent { stamp, node, changed_parameters, ..Default::default() };
        if let Err(error) = locked(&self.events).publish(&event) {
            warn!("a parameter event could not be published: {error}");
        }
    }
}

fn list(params: &Params, prefixes: &[String], depth: u64) -> ListParametersResult {
    let dots = |name: &str| name.matches('.').count() as u64;
    let deep_enough = |rest: &str| depth == 0 || dots(rest) < depth;
    let wanted = |name: &str| {
        if prefixes.is_empty() {
            return deep_enough(name);
        }
        prefixes.iter().any(|prefix| match name.strip_prefix(prefix.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(deep_enough),
            None => false,
        })
    };
    let names: Vec<String> = params
        .iter()
        .map(|(declared, _)| declared.name.clone())
        .filter(|name| wanted(name))
        .collect();
    let mut found: Vec<String> = names
        .iter()
        .filter_map(|name| name.rsplit_once('.'))
        .map(|(prefix, _)| prefix.to_owned())
        .collect();
    found.dedup();
    ListParametersResult { names, prefixes: found }
}

fn descriptor(declared: &Declared) -> ParameterDescriptor {
    let entry = declared.entry;
    let mut descriptor = ParameterDescriptor {
        name: declared.name.clone(),
        type_: type_number(declared),
        description: entry.description.to_owned(),
        read_only: entry.read_only,
        ..Default::default()
    };
    match entry.range {
        Range::Any => {}
        Range::Integer(from_value, to_value) => {
            descriptor.integer_range = vec![IntegerRange { from_value, to_value, step: 1 }];
        }
        Range::Double(from_value, to_value) => {
            descriptor.floating_point_range =
                vec![FloatingPointRange { from_value, to_value, step: 0.0 }];
        }
        Range::Choice(_) => descriptor.additional_constraints = entry.range.to_string(),
    }
    descriptor
}

fn type_number(declared: &Declared) -> u8 {
    match declared.entry.default.kind() {
        Kind::Bool => ParameterType::PARAMETER_BOOL as u8,
        Kind::Integer => ParameterType::PARAMETER_INTEGER as u8,
        Kind::Double => ParameterType::PARAMETER_DOUBLE as u8,
        Kind::Text => ParameterType::PARAMETER_STRING as u8,
        Kind::Texts => ParameterType::PARAMETER_STRING_ARRAY as u8,
        Kind::Doubles => ParameterType::PARAMETER_DOUBLE_ARRAY as u8,
    }
}

fn value_message(value: &Value) -> ValueMessage {
    let mut message = ValueMessage::default();
    let kind = match value {
        Value::Bool(value) => {
            message.bool_value = *value;
            ParameterType::PARAMETER_BOOL as u8
        }
        Value::Integer(value) => {
            message.integer_value = *value;
            ParameterType::PARAMETER_INTEGER as u8
        }
        Value::Double(value) => {
            message.double_value = *value;
            ParameterType::PARAMETER_DOUBLE as u8
        }
        Value::Text(value) => {
            message.string_value = value.clone();
            ParameterType::PARAMETER_STRING as u8
        }
        Value::Texts(values) => {
            message.string_array_value = values.clone();
            ParameterType::PARAMETER_STRING_ARRAY as u8
        }
        Value::Integers(values) => {
            message.integer_array_value = values.clone();
            ParameterType::PARAMETER_INTEGER_ARRAY as u8
        }
        Value::Doubles(values) => {
            message.double_array_value = values.clone();
            ParameterType::PARAMETER_DOUBLE_ARRAY as u8
        }
        Value::Other(_) => ParameterType::PARAMETER_NOT_SET as u8,
    };
    message.type_ = kind;
    message
}

fn value_of(message: &ValueMessage) -> Value {
    match u32::from(message.type_) {
        kind if kind == ParameterType::PARAMETER_BOOL as u32 => Value::Bool(message.bool_value),
        kind if kind == ParameterType::PARAMETER_INTEGER as u32 => {
            Value::Integer(message.integer_value)
        }
        kind if kind == ParameterType::PARAMETER_DOUBLE as u32 => {
            Value::Double(message.double_value)
        }
        kind if kind == ParameterType::PARAMETER_STRING as u32 => {
            Value::Text(message.string_value.clone())
        }
        kind if kind == ParameterType::PARAMETER_STRING_ARRAY as u32 => {
            Value::Texts(message.string_array_value.clone())
        }
        kind if kind == ParameterType::PARAMETER_INTEGER_ARRAY as u32 => {
            Value::Integers(message.integer_array_value.clone())
        }
        kind if kind == ParameterType::PARAMETER_DOUBLE_ARRAY as u32 => {
            Value::Doubles(message.double_array_value.clone())
        }
        kind if kind == ParameterType::PARAMETER_NOT_SET as u32 => Value::Other("not set"),
        _ => Value::Other("an array of another type"),
    }
}
