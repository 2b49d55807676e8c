//! What is answered in place of a result.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::policy::PolicyError;
use crate::serve::engine::EngineError;
use crate::words::brief;

/// After which a client that is told to wait may ask again, in seconds.
const RETRY_AFTER_S: &str = "1";

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 400: the request is well-formed and cannot be answered.
    #[error("{}", .0.join("; "))]
    Refused(Vec<String>),
    /// 401
    #[error("give the server's token as `Authorization: Bearer TOKEN`")]
    Unauthorized,
    #[error("there is no such path; see GET /openapi.json")]
    NotFound,
    #[error("the path does not have this method; see GET /openapi.json")]
    Method,
    /// 408
    #[error("the body was not there within {:.0} s", .0.as_secs_f64())]
    Slow(Duration),
    /// 413
    #[error("the body has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body must be application/json, in UTF-8 and not compressed")]
    MediaType,
    /// 422: the body is not JSON of the schema.
    #[error("{}", .0.msg)]
    Schema(SchemaError),
    /// 400: the client has broken off.
    #[error("the body cannot be read: {0}")]
    Broken(String),
    /// 503
    #[error("{0}")]
    Unavailable(String),
    /// 500, as `Type: text`.
    #[error("{kind}: {text}")]
    Failed { kind: &'static str, text: String },
}

/// One place of a body that is not as the schema has it.
#[derive(Debug, Serialize)]
pub struct SchemaError {
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// From `body` to the field.
    pub loc: Vec<Value>,
    pub msg: String,
}

impl ApiError {
    pub fn status(&self) -> StatusCode {
        match self {
            ApiError::Refused(_) | ApiError::Broken(_) => StatusCode::BAD_REQUEST,
            ApiError::Unauthorized => StatusCode::UNAUTHORIZED,
            ApiError::NotFound => StatusCode::NOT_FOUND,
            ApiError::Method => StatusCode::METHOD_NOT_ALLOWED,
            ApiError::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            ApiError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ApiError::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ApiError::Schema(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ApiError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            ApiError::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// With what would be accepted, where the request was refused for what is in it.
    pub fn into_response_with(self, inputs: Option<&Value>) -> Response {
        let status = self.status();
        let detail = match &self {
            ApiError::Refused(errors) => {
                let errors: Vec<String> = errors.iter().map(|error| brief(error)).collect();
                json!({ "errors": errors, "inputs": inputs })
            }
            ApiError::Schema(error) => json!([error]),
            other => Value::String(brief(&other.to_string())),
        };
        let mut response = (status, Json(json!({ "detail": detail }))).into_response();
        let headers = response.headers_mut();
        match self {
            ApiError::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ApiError::Unavailable(_) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
            }
            // Some of the body may be left.
            ApiError::Slow(_) | ApiError::TooLarge { .. } | ApiError::Broken(_) => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.into_response_with(None)
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Policy(error) => (*error).into(),
            other => ApiError::Unavailable(other.to_string()),
        }
    }
}

impl From<PolicyError> for ApiError {
    fn from(error: PolicyError) -> Self {
        let kind = match &error {
            PolicyError::Observation(error) => return ApiError::Refused(vec![error.to_string()]),
            PolicyError::State(error) => return ApiError::Refused(vec![error.to_string()]),
            PolicyError::Backend(_) => "BackendError",
            PolicyError::Decode(_) => "DecodeError",
            _ => "PolicyError",
        };
        ApiError::Failed { kind, text: error.to_string() }
    }
}
