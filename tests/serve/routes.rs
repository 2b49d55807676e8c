//! The other routes, and who may ask.

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::serve::Token;
use serde_json::json;

use super::rig::{Rig, Setup, exchange};

#[test]
fn health_and_models_name_what_is_served() {
    let rig = Rig::of(Version::N16);
    let health = rig.get("/health");
    assert_eq!(health.status, 200);
    let expected = json!({ "status": "ok", "model": "GR00T-N1.6-3B-cpu", "device": "cpu" });
    assert_eq!(health.json(), expected);
    let models = rig.get("/v1/models").json();
    assert_eq!(models["object"], "list");
    assert_eq!(models["data"][0]["id"], "nvidia/GR00T-N1.6-3B");
}

#[test]
fn info_tells_inputs_outputs_and_how_the_policy_was_looked_at() {
    for (version, layout, tokens) in
        [(Version::N15, "gr1", 102), (Version::N16, "gr1", 24), (Version::N17, "droid", 51)]
    {
        let rig = Rig::of(version);
        let (info, model) = (rig.get("/info").json(), rig.ready());
        assert_eq!(info["version"], version.name());
        assert_eq!(info["layout"], layout);
        assert_eq!(info["inputs"]["instruction"]["tokens"], tokens);
        assert_eq!(info["inputs"]["images"]["cameras"], json!(model.embodiment.cameras));
        assert_eq!(info["noise"]["default_seed"], version.default_seed());
        assert_eq!(info["outputs"]["action_horizon"], model.embodiment.horizon);
        assert_eq!(info["weights"]["fingerprint"], model.fingerprint);
        assert_eq!(info["warmup_latency_ms"].as_array().expect("times").len(), 1);
        let verdict = info["warmup_fidelity_vs_golden"]["verdict"].as_str().expect("text");
        assert!(verdict.contains("no golden"), "{verdict}");
    }
}

#[test]
fn the_demonstration_has_its_own_answer() {
    for version in Version::ALL {
        let rig = Rig::of(version);
        let demo = rig.get("/demo").json();
        let answer = rig.predict(&demo["request"]).chunk();
        assert_eq!(answer["actions"], demo["expected"]["actions"], "{version}");
        assert_eq!(answer["action_keys"], demo["expected"]["action_keys"]);
        let source = demo["expected"]["source"].as_str().expect("text");
        assert!(source.contains("says nothing of fidelity"), "{source}");
    }
}

#[test]
fn other_paths_and_methods_are_told_apart() {
    let rig = Rig::of(Version::N16);
    let get = |path: &str| rig.get(path);
    assert_eq!((get("/").status, get("/predict").status), (404, 405));
    let answer = exchange(rig.address, "DELETE /info HTTP/1.1\r\n", b"");
    assert_eq!(answer.status, 405);
    assert!(answer.json()["detail"].is_string());
    let text =
        exchange(rig.address, "POST /predict HTTP/1.1\r\nContent-Type: text/plain\r\n", b"{}");
    assert_eq!(text.status, 415);
}

#[test]
fn the_openapi_document_names_every_route_and_the_robot() {
    let rig = Rig::of(Version::N17);
    let document = rig.get("/openapi.json").json();
    let paths: Vec<&String> = document["paths"].as_object().expect("paths").keys().collect();
    let expected =
        ["/demo", "/health", "/info", "/metrics", "/openapi.json", "/predict", "/v1/models"];
    assert_eq!(paths, expected);
    for path in expected.into_iter().filter(|path| *path != "/predict") {
        assert_eq!(rig.get(path).status, 200, "{path}");
    }
    let images = &document["components"]["schemas"]["Request"]["properties"]["images"];
    assert_eq!(images["required"], json!(["exterior_image_1_left", "wrist_image_left"]));
}

#[test]
fn metrics_count_answers() {
    let rig = Rig::with_policy(Version::N16, Setup::default(), |policy| policy);
    rig.ready();
    rig.predict(&rig.demo()).chunk();
    rig.post(b"pear");
    let answer = rig.get("/metrics");
    assert!(answer.head.contains("application/openmetrics-text"), "{}", answer.head);
    let text = answer.text();
    for line in [
        "gr00t_http_requests_total{route=\"/predict\",status=\"200\"} 1",
        "gr00t_http_requests_total{route=\"/predict\",status=\"422\"} 1",
        "gr00t_predict_duration_seconds_count{server=\"http\"} 1",
        "gr00t_stage_duration_seconds_count{stage=\"vision\"} 1",
        "gr00t_queue_waiting 0",
        "gr00t_ready 1",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line} in\n{text}");
    }
}

#[test]
fn a_token_is_asked_for_everywhere_but_at_health() {
    let setup = Setup { token: Some(Token::new("pear")), ..Setup::default() };
    let rig = Rig::with_policy(Version::N16, setup, |policy| policy);
    rig.ready();
    assert_eq!(rig.get("/health").status, 200);
    for path in ["/info", "/demo", "/metrics", "/openapi.json", "/v1/models", "/predict", "/other"]
    {
        let refused = rig.get(path);
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.head.to_lowercase().contains("www-authenticate: bearer"), "{path}");
    }
    assert_eq!(rig.post(b"{}").status, 401);
    let shown = |token: &str| {
        let head = format!("GET /info HTTP/1.1\r\nAuthorization: Bearer {token}\r\n");
        exchange(rig.address, &head, b"").status
    };
    assert_eq!((shown("pear"), shown("peas"), shown("")), (200, 401, 401));
    let head = "GET /openapi.json HTTP/1.1\r\nAuthorization: Bearer pear\r\n";
    let document = exchange(rig.address, head, b"").json();
    assert_eq!(document["security"], json!([{ "token": [] }]));
}
