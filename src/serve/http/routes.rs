//! Routes, and what happens on each.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tracing::warn;

use super::answer::{self, Answer, TimingMs};
use super::body::{Held, Reader, Shared};
use super::connection::Requests;
use super::error::ApiError;
use super::metrics::{self, Metrics, Now};
use super::observation::Asked;
use super::{Limits, demo, info, openapi, read, token};
use crate::contract::Version;
use crate::serve::engine::{Engine, Place, Stage};
use crate::serve::times::Server;
use crate::serve::{Model, Token};
use crate::throttle::Warnings;
use crate::weights::cache;
use crate::weights::lock::{Licence, Release};
use crate::words::brief;

/// What the server is called, before it has a policy.
#[derive(Clone, Debug)]
pub struct Identity {
    pub version: Version,
    /// `GR00T-N1.6-3B-cpu`
    pub model: String,
    /// `cpu`, or the card.
    pub device: String,
    /// Repository of the released checkpoint; for another one, the name of its folder.
    pub checkpoint: String,
    pub revision: Option<String>,
    pub license: String,
}

impl Identity {
    /// Of a checkpoint on a device, such as `cpu`. `snapshot` is `None` for the one that is released as `release`.
    pub fn new(version: Version, release: &Release, snapshot: Option<&Path>, device: &str) -> Self {
        let released = snapshot.is_none_or(|dir| is_released(dir, release));
        let (checkpoint, revision) = match snapshot.filter(|_| !released) {
            None => (release.weights.repo.clone(), release.weights.revision.clone()),
            Some(dir) => (folder_name(dir), None),
        };
        let name = checkpoint.rsplit('/').next().unwrap_or_default();
        let Licence { name: licence, note, .. } = &release.licence;
        Self {
            version,
            model: format!("{name}-{device}"),
            device: device.to_owned(),
            revision,
            license: format!("weights: {licence}. {note}"),
            checkpoint,
        }
    }
}

/// Whether a snapshot lies where the hub cache has this release.
fn is_released(snapshot: &Path, release: &Release) -> bool {
    let Ok(dir) = snapshot.canonicalize() else { return false };
    let revision = release.weights.revision.as_deref().map(OsStr::new);
    let repo = dir.parent().and_then(Path::parent).and_then(Path::file_name);
    dir.file_name() == revision && repo == Some(cache::repo_folder(&release.weights.repo).as_ref())
}

fn folder_name(snapshot: &Path) -> String {
    let dir = snapshot.canonicalize().unwrap_or_else(|_| snapshot.to_owned());
    dir.file_name()
        .map_or_else(|| "checkpoint".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Everything that the routes share.
pub struct App {
    engine: Engine,
    identity: Identity,
    limits: Limits,
    token: Option<Token>,
    bodies: Reader,
    /// Requests whose pictures are decoded at a time.
    decoders: Arc<Semaphore>,
    metrics: Metrics,
    warnings: Warnings,
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
            identity,
            limits,
            token,
            bodies: Reader::new(limits.body_bytes, limits.held_bytes, limits.body),
            decoders: Arc::new(Semaphore::new(decoders)),
            metrics: Metrics::new(engine.times()),
            warnings: Warnings::default(),
            texts: OnceLock::new(),
            engine,
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Tells whoever runs the server why a prediction was not answered.
    fn tell(&self, error: &ApiError) {
        if let Some(more) = self.warnings.pass() {
            let (status, text) = (error.status().as_u16(), brief(&error.to_string()));
            warn!("status {status}: {text}{more}");
        }
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
        .layer(middleware::from_fn_with_state(app.clone(), drain))
        .with_state(app)
}

/// Reads what a refusal has left of the body: a client that still sends it when its connection ends may never see the
/// answer. One that asks first whether to send it need not; where it does not come, or not in time, there is no rest to read.
async fn drain(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let asks_first = head.headers.contains_key(header::EXPECT);
    let (body, rest) = Shared::of(body);
    let response = next.run(Request::from_parts(head, Body::new(body))).await;
    let comes = response.status() == StatusCode::PAYLOAD_TOO_LARGE
        || !response.headers().contains_key(header::CONNECTION);
    if !response.status().is_success() && !asks_first && comes {
        app.bodies.skip(rest).await;
    }
    response
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
    let id = &app.identity.checkpoint;
    let owner = id.split_once('/').map_or("local", |(owner, _)| owner);
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

async fn predict(
    State(app): State<Arc<App>>,
    Extension(requests): Extension<Requests>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let model = app.engine.model().ok();
    let inputs = model.as_ref().map(|model| &app.texts(model).inputs);
    match answered(&app, &requests, &headers, body).await {
        Ok(response) => response,
        Err(error) => {
            app.tell(&error);
            error.into_response_with(inputs)
        }
    }
}

/// The whole way of a prediction.
async fn answered(
    app: &App,
    requests: &Requests,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let model = app.engine.model()?;
    check_media_type(headers)?;
    let body = app.bodies.read(headers, body).await?;
    let _busy = requests.begin();
    // How long a client takes to send its body is not the server's time.
    let start = Instant::now();
    // The place comes first: with a full queue, no picture is decoded.
    let place = app.engine.reserve()?;
    let (asked, place) = decoded(app, body, &model, place).await?;
    let decode = start.elapsed();
    let request = answer::Request::of(&asked);
    let prediction = place.predict(asked.observation, asked.noise).await?;
    let total = start.elapsed();
    app.engine.times().answered(Server::Http, total, &prediction.chunk.timings);
    let timing = TimingMs::new(decode, &prediction, total);
    let answer = Answer::new(&app.identity.model, &model, &request, &prediction, timing);
    let text = serde_json::to_vec(&answer)
        .map_err(|error| ApiError::Failed { kind: "SerializeError", text: error.to_string() })?;
    Ok(as_json(text.into()))
}

/// A body of another kind is refused; one that says nothing is taken for JSON.
fn check_media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if text(header::CONTENT_ENCODING).is_some_and(|coding| !is(coding, "identity")) {
        return Err(ApiError::MediaType);
    }
    let Some(kind) = text(header::CONTENT_TYPE) else { return Ok(()) };
    let mut parts = kind.split(';');
    let is_json = parts.next().is_some_and(|essence| is(essence, "application/json"));
    let mut charsets =
        parts.filter_map(|part| part.split_once('=')).filter(|(name, _)| is(name, "charset"));
    let is_utf8 = charsets.all(|(_, charset)| is(charset.trim().trim_matches('"'), "utf-8"));
    if is_json && is_utf8 { Ok(()) } else { Err(ApiError::MediaType) }
}

/// Whether a header's word is this one.
fn is(word: &str, wanted: &str) -> bool {
    word.trim().eq_ignore_ascii_case(wanted)
}

/// The observation of a body, read beside the connections. Turn and place are given back when it has been read, also if the
/// client has left meanwhile: others would otherwise begin before the memory is free.
async fn decoded(
    app: &App,
    body: Held,
    model: &Arc<Model>,
    place: Place,
) -> Result<(Asked, Place), ApiError> {
    let failed = |text: String| ApiError::Failed { kind: "DecoderError", text };
    let turn = app.decoders.clone().acquire_owned().await;
    let turn = turn.map_err(|error| failed(error.to_string()))?;
    let model = model.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let asked = read(&body.bytes, &model);
        drop(turn);
        Ok((asked?, place))
    });
    asked.await.map_err(|error| failed(error.to_string()))?
}

fn as_json(text: Bytes) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
}
