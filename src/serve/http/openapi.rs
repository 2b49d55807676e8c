//! `GET /openapi.json`: routes, fields and answers for tools.

use serde_json::{Map, Value, json};

use super::Identity;
use crate::encode::prompt::MAX_INSTRUCTION_CHARS;
use crate::serve::Model;

/// The OpenAPI document; narrower once the policy, and so its robot, is known. `with_token` says that one is asked for.
pub fn document(identity: &Identity, model: Option<&Model>, with_token: bool) -> Value {
    let plain = |id: &str, summary: &str, media: &str, more: &[&str]| {
        let mut responses = json!({
            "200": { "description": "OK", "content": { media: { "schema": {} } } },
        });
        add_errors(&mut responses, more);
        json!({ "get": { "operationId": id, "summary": summary, "responses": responses } })
    };
    let mut predicted = json!({
        "200": {
            "description": "One action chunk",
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Answer" } } },
        },
    });
    add_errors(&mut predicted, &["400", "401", "408", "413", "415", "422", "500", "503"]);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": identity.model, "version": env!("CARGO_PKG_VERSION") },
        "paths": {
            "/health": plain("health", "Whether the policy answers", "application/json", &[]),
            "/info": plain("info", "What is served, and what it takes", "application/json", &["401", "503"]),
            "/demo": plain("demo", "A request with its answer", "application/json", &["401", "503"]),
            "/v1/models": plain("models", "Name of the checkpoint", "application/json", &["401"]),
            "/metrics": plain("metrics", "Counters for Prometheus", "application/openmetrics-text", &["401"]),
            "/openapi.json": plain("openapi", "This document", "application/json", &["401"]),
            "/predict": { "post": {
                "operationId": "predict",
                "summary": "One observation in, one action chunk out",
                "requestBody": {
                    "required": true,
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Request" } } },
                },
                "responses": predicted,
            } },
        },
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "Request": request(model),
                "Answer": answer(),
                "Error": {
                    "type": "object",
                    "required": ["detail"],
                    "properties": { "detail": { "type": ["string", "array", "object"] } },
                },
            },
        },
    });
    if with_token {
        document["security"] = json!([{ "token": [] }]);
        document["paths"]["/health"]["get"]["security"] = json!([]);
    }
    document
}

fn add_errors(responses: &mut Value, statuses: &[&str]) {
    for status in statuses {
        let description = match *status {
            "400" => "Well-formed, but it cannot be answered",
            "401" => "The token is missing or wrong",
            "408" => "The body came too slowly",
            "413" => "The body is too large",
            "415" => "The body is not JSON",
            "422" => "The body is not of the schema",
            "503" => "The policy is starting, or too many requests wait",
            _ => "The policy has failed",
        };
        responses[status] = json!({
            "description": description,
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
        });
    }
}

fn numbers(dim: Option<usize>) -> Value {
    let mut list = json!({ "type": "array", "items": { "type": "number" } });
    if let Some(dim) = dim {
        list["minItems"] = dim.into();
        list["maxItems"] = dim.into();
    }
    let rows = json!({ "type": "array", "minItems": 1, "maxItems": 1, "items": list });
    json!({ "anyOf": [list, rows] })
}

fn request(model: Option<&Model>) -> Value {
    let picture = json!({ "type": "string", "contentEncoding": "base64" });
    let frames = json!({ "anyOf": [picture, { "type": "array", "items": picture }] });
    let mut noise = json!({ "type": "array", "items": { "type": "array" } });
    if let Some([rows, cols]) = model.map(|model| model.noise_shape) {
        noise["description"] = json!(format!("[{rows}, {cols}] or [1, {rows}, {cols}]"));
    }
    let text = json!({ "type": "string", "minLength": 1, "maxLength": MAX_INSTRUCTION_CHARS });
    let (images, state) = match model {
        Some(model) => {
            let robot = &model.embodiment;
            let cameras = robot.cameras.iter().map(|camera| (camera.clone(), frames.clone()));
            let groups =
                robot.state.iter().map(|group| (group.name.clone(), numbers(Some(group.dim))));
            (closed(cameras.collect()), closed(groups.collect()))
        }
        None => (
            json!({ "type": "object", "additionalProperties": frames }),
            json!({ "type": "object", "additionalProperties": numbers(None) }),
        ),
    };
    let name = |name: &str| json!({ "required": [name] });
    json!({
        "type": "object",
        "required": ["images", "state"],
        "oneOf": [name("instruction"), name("language"), name("prompt")],
        "additionalProperties": false,
        "properties": {
            "images": images,
            "state": state,
            "instruction": text,
            "language": text,
            "prompt": text,
            "embodiment": { "type": ["string", "null"] },
            "seed": { "type": ["integer", "null"], "minimum": 0, "maximum": u64::MAX },
            "noise": { "anyOf": [noise, { "type": "null" }] },
            "state_dtype": { "enum": ["float32", "float64", null] },
            "return_normalized": { "type": ["boolean", "null"] },
        },
    })
}

/// An object with exactly these properties.
fn closed(properties: Map<String, Value>) -> Value {
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn answer() -> Value {
    let rows =
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "number" } } });
    json!({
        "type": "object",
        "required": [
            "actions", "action_horizon", "action_keys", "action_dims", "normalized", "embodiment", "embodiment_id",
            "version", "model", "layout", "images", "seq_len", "prompt_tokens", "state_dtype", "noise_source", "seed",
            "timing_ms",
        ],
        "properties": {
            "actions": { "type": "object", "additionalProperties": rows },
            "action_horizon": { "type": "integer" },
            "action_keys": { "type": "array", "items": { "type": "string" } },
            "action_dims": { "type": "object", "additionalProperties": { "type": "integer" } },
            "normalized": { "const": false },
            "embodiment": { "type": "string" },
            "embodiment_id": { "type": "integer" },
            "version": { "enum": ["n15", "n16", "n17"] },
            "model": { "type": "string" },
            "layout": { "type": "string" },
            "images": { "type": "object" },
            "seq_len": { "type": "integer" },
            "prompt_tokens": { "type": "integer" },
            "state_dtype": { "enum": ["float32", "float64"] },
            "noise_source": { "enum": ["seed", "client"] },
            "seed": { "type": ["integer", "null"] },
            "timing_ms": { "type": "object", "additionalProperties": { "type": "number" } },
            "action_pred_normalized": rows,
            "action_pred_valid_hd": rows,
        },
    })
}
