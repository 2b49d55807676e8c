//! Routes, and what happens on each.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::answer::{self, Answer, TimingMs};
use super::body::{Held, Reader};
use super::error::ApiError;
use super::metrics::{self, Metrics, Now};
use super::observation::Asked;
use super::{Limits, demo, info, openapi, read, token};
use crate::contract::Version;
use crate::serve::engine::{Engine, Stage};
use crate::serve::{Model, Token};
use crate::weights::lock::{Licence, Release};

/// What the server is called, before it has a policy.
#[derive(Clone, Debug)]
pub struct Identity {
    pub version: Version,
    /// `GR00T-N1.6-3B-cpu`
    pub model: String,
    /// `cpu`, or the card.
    pub device: String,
    /// Repository of the released checkpoint.
    pub repo: String,
    pub revision: Option<String>,
    pub license: String,
}

impl Identity {
    /// Of a policy on the CPU; `released` says that the checkpoint is the one of the hub cache.
    pub fn on_the_cpu(version: Version, release: &Release, released: bool) -> Self {
        let device = "cpu".to_owned();
        let name = release.weights.repo.rsplit('/').next().unwrap_or_default();
        let Licence { name: licence, note, .. } = &release.licence;
        Self {
            version,
            model: format!("{name}-{device}"),
            device,
            repo: release.weights.repo.clone(),
            revision: release.weights.revision.clone().filter(|_| released),
            license: format!("weights: {licence}. {note}"),
        }
    }
}

/// Everything that the routes share.
pub struct App {
    engine: Engine,
    identity: Identity,
    limits: Limits,
    token: Option<Token>,
    bodies: Reader,
    /// Requests whose pictures are decoded at a time.
    decoders: Semaphore,
    metrics: Metrics,
    /// Texts that no request changes, made when they are first asked for.
    texts: OnceLock<Texts>,
}

struct Texts {
    inputs: Value,
    info: Bytes,
    demo: Bytes,
}

impl App {
    pub fn new(engine: Engine, identity: Identity, limits: Limits, token: Option<Token>) -> Self {
        let decoders = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            engine,
            identity,
            limits,
            token,
            bodies: Reader::new(limits.body_bytes, limits.held_bytes, limits.body),
            decoders: Semaphore::new(decoders),
            metrics: Metrics::default(),
            texts: OnceLock::new(),
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn texts(&self, model: &Model) -> &Texts {
        self.texts.get_or_init(|| {
            let inputs = info::inputs(model);
            Texts {
                info: info::info(&self.identity, model, &inputs, &self.limits).to_string().into(),
                demo: demo::demo(model).expect("numbers and texts are JSON").into(),
                inputs,
            }
        })
    }
}

/// The routes of a server.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/info", get(info_route))
        .route("/demo", get(demo_route))
        .route("/v1/models", get(models))
        .route("/predict", post(predict))
        .route("/metrics", get(metrics_route))
        .route("/openapi.json", get(openapi_route))
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::Method)
        .layer(middleware::from_fn_with_state(app.clone(), admit))
        .with_state(app)
}

/// Lets in who shows the token, and counts what is answered.
async fn admit(
    State(app): State<Arc<App>>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    // Whoever watches the server has no secret to show.
    let open = path.as_ref().is_some_and(|path| path.as_str() == "/health");
    let known = app.token.as_ref().is_none_or(|token| token::is_shown(token, request.headers()));
    let response = if open || known {
        next.run(request).await
    } else {
        ApiError::Unauthorized.into_response()
    };
    let route = path.as_ref().map_or("other", MatchedPath::as_str);
    app.metrics.answered(route, response.status());
    response
}

async fn health(State(app): State<Arc<App>>) -> Json<Value> {
    let status = match app.engine.stage() {
        Stage::Starting => "starting",
        Stage::Ready(_) => "ok",
        Stage::Stopped => "stopped",
    };
    let Identity { model, device, .. } = &app.identity;
    Json(json!({ "status": status, "model": model, "device": device }))
}

async fn info_route(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let model = app.engine.model()?;
    Ok(as_json(app.texts(&model).info.clone()))
}

async fn demo_route(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let model = app.engine.model()?;
    Ok(as_json(app.texts(&model).demo.clone()))
}

async fn models(State(app): State<Arc<App>>) -> Json<Value> {
    let id = &app.identity.repo;
    let owner = id.split('/').next().unwrap_or_default();
    Json(json!({
        "object": "list",
        "data": [{ "id": id, "object": "model", "owned_by": owner }],
    }))
}

async fn metrics_route(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let now = Now {
        waiting: app.engine.waiting(),
        held: app.bodies.held(),
        ready: matches!(app.engine.stage(), Stage::Ready(_)),
    };
    let text = app
        .metrics
        .text(&now)
        .map_err(|error| ApiError::Failed { kind: "MetricsError", text: error.to_string() })?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

async fn openapi_route(State(app): State<Arc<App>>) -> Json<Value> {
    let model = app.engine.model().ok();
    Json(openapi::document(&app.identity, model.as_deref(), app.token.is_some()))
}

async fn predict(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let model = app.engine.model().ok();
    let inputs = model.as_ref().map(|model| &app.texts(model).inputs);
    match answered(&app, &headers, body).await {
        Ok(response) => response,
        Err(error) => error.into_response_with(inputs),
    }
}

/// The whole way of a prediction.
async fn answered(app: &App, headers: &HeaderMap, body: Body) -> Result<Response, ApiError> {
    let model = app.engine.model()?;
    check_media_type(headers)?;
    let body = app.bodies.read(headers, body).await?;
    // How long a client takes to send its body is not the server's time.
    let start = Instant::now();
    // The place comes first: with a full queue, no picture is decoded.
    let place = app.engine.reserve()?;
    let asked = decoded(app, body, &model).await?;
    let decode = start.elapsed();
    let request = answer::Request::of(&asked);
    let prediction = place.predict(asked.observation, asked.noise).await?;
    let total = start.elapsed();
    app.metrics.predicted(total, &prediction.chunk.timings);
    let timing = TimingMs::new(decode, &prediction, total);
    let answer = Answer::new(&app.identity.model, &model, &request, &prediction, timing);
    let text = serde_json::to_vec(&answer)
        .map_err(|error| ApiError::Failed { kind: "SerializeError", text: error.to_string() })?;
    Ok(as_json(text.into()))
}

/// A body of another kind is refused; one that says nothing is taken for JSON.
fn check_media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiError::MediaType)
}

/// The observation of a body, read beside the connections.
async fn decoded(app: &App, body: Held, model: &Arc<Model>) -> Result<Asked, ApiError> {
    let failed = |text: String| ApiError::Failed { kind: "DecoderError", text };
    let turn = app.decoders.acquire().await.map_err(|error| failed(error.to_string()))?;
    let model = model.clone();
    let asked = tokio::task::spawn_blocking(move || read(&body.bytes, &model));
    let asked = asked.await.map_err(|error| failed(error.to_string()))?;
    drop(turn);
    asked
}

fn as_json(text: Bytes) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
}
