//! Every row of the documents' request tables: what is accepted, and how the rest is refused.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gr00t_blackhole::contract::Version;
use image::{ImageFormat, RgbImage};
use serde_json::{Value, json};

use super::rig::{Rig, exchange};

/// One change of a request that is answered, and what follows.
struct Row {
    name: &'static str,
    change: Box<dyn Fn(&mut Value)>,
    status: u16,
    /// What the text of the answer has.
    part: &'static str,
}

fn row(
    name: &'static str,
    status: u16,
    part: &'static str,
    change: impl Fn(&mut Value) + 'static,
) -> Row {
    Row { name, change: Box::new(change), status, part }
}

fn check(version: Version, rows: &[Row]) {
    let rig = Rig::of(version);
    let demo = rig.demo();
    for Row { name, change, status, part } in rows {
        let mut request = demo.clone();
        change(&mut request);
        let answer = rig.predict(&request);
        assert_eq!(answer.status, *status, "{version}, {name}: {}", answer.text());
        assert!(
            answer.text().contains(part),
            "{version}, {name}: no {part:?} in {}",
            answer.text()
        );
        match status {
            400 => {
                let detail = &answer.json()["detail"];
                assert!(!detail["errors"].as_array().expect("errors").is_empty(), "{name}");
                let cameras = &detail["inputs"]["images"]["cameras"];
                assert_eq!(*cameras, json!(rig.ready().embodiment.cameras), "{name}");
            }
            422 => assert_eq!(answer.json()["detail"][0]["loc"][0], "body", "{name}"),
            _ => {}
        }
    }
}

fn picture(width: u32, height: u32, format: ImageFormat) -> String {
    let image = RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 7]));
    let mut data = Cursor::new(Vec::new());
    image.write_to(&mut data, format).expect("encoded");
    STANDARD.encode(data.into_inner())
}

fn png(width: u32, height: u32) -> String {
    picture(width, height, ImageFormat::Png)
}

/// The first camera of a request.
fn camera(request: &mut Value) -> &mut Value {
    request["images"].as_object_mut().expect("cameras").values_mut().next().expect("a camera")
}

/// The first state group of a request.
fn group(request: &mut Value) -> &mut Value {
    request["state"].as_object_mut().expect("groups").values_mut().next().expect("a group")
}

fn remove_first(map: &mut Value) {
    let map = map.as_object_mut().expect("a map");
    let first = map.keys().next().expect("one").clone();
    map.remove(&first);
}

fn without_noise(request: &mut Value) {
    let fields = request.as_object_mut().expect("fields");
    fields.remove("seed");
    fields.remove("noise");
}

fn images(version: Version) -> Vec<Row> {
    let mut rows = vec![
        row("the demonstration", 200, "\"actions\"", |_| {}),
        row("a camera is missing", 400, "is missing; the observation has", |r| {
            remove_first(&mut r["images"]);
        }),
        row("another camera", 400, "camera 'other' is not one of", |r| {
            r["images"]["other"] = json!(png(256, 256));
        }),
        row("no frame", 400, "has 0 frames", |r| *camera(r) = json!([])),
        row("no base64", 400, "it is no base64", |r| camera(r)[0] = json!("#")),
        row("no picture", 400, "neither JPEG nor PNG", |r| camera(r)[0] = json!("QUJD")),
        row("half a picture", 400, "PNG data is damaged", |r| {
            let text = png(256, 144);
            camera(r)[0] = json!(&text[..text.len() / 8 * 4]);
        }),
        row("too small", 400, "each side must be 64 to 4096 pixels", |r| {
            camera(r)[0] = json!(png(63, 64));
        }),
        row("too large", 400, "each side must be 64 to 4096 pixels", |r| {
            camera(r)[0] = json!(png(4097, 64));
        }),
        row("images are a list", 422, "expected a JSON object", |r| r["images"] = json!([])),
        row("a frame is a number", 422, "expected a string", |r| camera(r)[0] = json!(3)),
        row("a camera is a number", 422, "a picture as base64", |r| *camera(r) = json!(3)),
    ];
    if version == Version::N17 {
        rows.extend([
            row("other sizes", 200, "[720,1280]", |r| {
                *camera(r) = json!([png(1280, 720), png(1280, 720)]);
            }),
            row("JPEG", 200, "[180,320]", |r| {
                let frame = picture(320, 180, ImageFormat::Jpeg);
                *camera(r) = json!([frame, frame]);
            }),
            row("one frame", 400, "has 1 frames; the embodiment needs 2", |r| {
                *camera(r) = json!(png(320, 180));
            }),
            row("three frames", 400, "has 3 frames; the embodiment needs 2", |r| {
                *camera(r) = json!([png(320, 180), png(320, 180), png(320, 180)]);
            }),
            row("a square", 400, "width divided by height must be from 1.686 to 1.814", |r| {
                *camera(r) = json!([png(256, 256), png(256, 256)]);
            }),
            row("frames of two sizes", 400, "must be of one size", |r| {
                *camera(r) = json!([png(320, 180), png(640, 360)]);
            }),
        ]);
    } else {
        rows.extend([
            row("a string", 200, "[100,90]", |r| *camera(r) = json!(png(90, 100))),
            row("a list of one", 200, "[64,4096]", |r| *camera(r) = json!([png(4096, 64)])),
            row("JPEG", 200, "[100,90]", |r| {
                *camera(r) = json!(picture(90, 100, ImageFormat::Jpeg));
            }),
            row("base64 with line breaks", 200, "[100,90]", |r| {
                let text = png(90, 100);
                let (start, end) = text.split_at(76);
                *camera(r) = json!(format!("{start}\r\n{end}\n"));
            }),
            row("two frames", 400, "has 2 frames; the embodiment needs 1", |r| {
                *camera(r) = json!([png(90, 100), png(90, 100)]);
            }),
        ]);
    }
    rows
}

fn state() -> Vec<Row> {
    vec![
        row("one row", 200, "\"actions\"", |r| {
            let flat = group(r).clone();
            *group(r) = json!([flat]);
        }),
        row("integers", 200, "\"actions\"", |r| {
            let other = r["state"].as_object_mut().expect("groups").values_mut().next_back();
            other.expect("a group")[0] = json!(0);
        }),
        row("a group is missing", 400, "is missing; the observation has", |r| {
            remove_first(&mut r["state"]);
        }),
        row("another group", 400, "state group 'tail' is not one of", |r| {
            r["state"]["tail"] = json!([0.0]);
        }),
        row("another width", 400, "it must be [", |r| *group(r) = json!([0.5])),
        row("two rows", 400, "it must be [", |r| {
            let flat = group(r).clone();
            *group(r) = json!([flat, flat]);
        }),
        row("lists of different lengths", 400, "lists of different lengths", |r| {
            *group(r) = json!([[0.5], [0.5, 0.5]]);
        }),
        row("no f32", 400, "it must be a finite number", |r| group(r)[0] = json!(1e300)),
        row("text", 422, "a number or a list of numbers", |r| group(r)[0] = json!("0.5")),
        row("true", 422, "a number or a list of numbers", |r| group(r)[0] = json!(true)),
        row("null", 422, "a number or a list of numbers", |r| group(r)[0] = json!(null)),
        row("a number", 422, "a list of numbers", |r| *group(r) = json!(0.5)),
        row("float32", 200, "\"state_dtype\":\"float32\"", |r| r["state_dtype"] = json!("float32")),
        row("float64", 200, "\"state_dtype\":\"float64\"", |r| r["state_dtype"] = json!("float64")),
        row("float16", 422, "float16", |r| r["state_dtype"] = json!("float16")),
    ]
}

fn instruction() -> Vec<Row> {
    fn named(r: &mut Value, name: &str, text: Value) {
        let fields = r.as_object_mut().expect("fields");
        fields.remove("instruction");
        fields.insert(name.to_owned(), text);
    }
    vec![
        row("language", 200, "\"actions\"", |r| named(r, "language", json!("wave"))),
        row("prompt", 200, "\"actions\"", |r| named(r, "prompt", json!("wave"))),
        row("both", 422, "duplicate field", |r| r["prompt"] = json!("wave")),
        row("missing", 422, "missing field `instruction`", |r| {
            r.as_object_mut().expect("fields").remove("instruction");
        }),
        row("empty", 400, "0 characters; it must have 1 to 2000", |r| {
            r["instruction"] = json!(" \n ");
        }),
        row("2001 characters", 400, "2001 characters; it must have 1 to 2000", |r| {
            r["instruction"] = json!("é".repeat(2001));
        }),
        row("too many tokens", 400, "n_text exceeds L_max", |r| {
            r["instruction"] = json!("q7 ".repeat(150));
        }),
        row("a number", 422, "expected a string", |r| r["instruction"] = json!(3)),
    ]
}

fn others(version: Version) -> Vec<Row> {
    let [rows, cols] = Rig::of(version).ready().noise_shape;
    let noise = move || vec![vec![0.25; cols]; rows];
    vec![
        row("without embodiment", 200, "\"embodiment\":", |r| {
            r.as_object_mut().expect("fields").remove("embodiment");
        }),
        row("another embodiment", 400, "embodiment 'libero' is not served", |r| {
            r["embodiment"] = json!("libero");
        }),
        row("embodiment is a number", 422, "expected a string", |r| r["embodiment"] = json!(1)),
        row("seed", 200, "\"noise_source\":\"seed\",\"seed\":7,", |r| {
            without_noise(r);
            r["seed"] = json!(7);
        }),
        row("neither seed nor noise", 200, "\"noise_source\":\"seed\"", without_noise),
        row("seed below 0", 422, "an integer from 0", |r| r["seed"] = json!(-1)),
        row("seed is text", 422, "an integer from 0", |r| r["seed"] = json!("1")),
        row("seed is no integer", 422, "an integer from 0", |r| r["seed"] = json!(0.5)),
        row("noise", 200, "\"noise_source\":\"client\",\"seed\":null", move |r| {
            without_noise(r);
            r["noise"] = json!(noise());
        }),
        row("noise as a batch", 200, "\"noise_source\":\"client\"", move |r| {
            without_noise(r);
            r["noise"] = json!([noise()]);
        }),
        row("seed and noise", 400, "either 'seed' or 'noise', not both", move |r| {
            r["seed"] = json!(1);
            r["noise"] = json!(noise());
        }),
        row("noise of another shape", 400, "noise is [1, 2]; it must be [", |r| {
            without_noise(r);
            r["noise"] = json!([[0.0, 1.0]]);
        }),
        row("ragged noise", 400, "noise is lists of different lengths", |r| {
            without_noise(r);
            r["noise"] = json!([[0.0], [0.0, 1.0]]);
        }),
        row("noise that is no f32", 400, "no finite f32 at row 0, column 0", move |r| {
            without_noise(r);
            let mut noise = noise();
            noise[0][0] = 1e39;
            r["noise"] = json!(noise);
        }),
        row("noise is text", 422, "a list of numbers", |r| {
            without_noise(r);
            r["noise"] = json!("0");
        }),
        row("return_normalized", 200, "\"action_pred_valid_hd\":[[", |r| {
            r["return_normalized"] = json!(true);
        }),
        row("return_normalized is a number", 422, "expected a boolean", |r| {
            r["return_normalized"] = json!(1);
        }),
        row("an unknown field", 422, "unknown field `temperature`", |r| {
            r["temperature"] = json!(1.0);
        }),
    ]
}

/// The other versions drop all punctuation from an instruction.
fn instruction_of_n15() -> Vec<Row> {
    let change = |r: &mut Value| r["instruction"] = json!("a <|im_end|> b");
    vec![row("a control token", 400, "control token", change)]
}

fn check_all(version: Version) {
    for rows in [images(version), state(), instruction(), others(version)] {
        check(version, &rows);
    }
}

#[test]
fn n15_takes_what_the_documents_say() {
    check_all(Version::N15);
    check(Version::N15, &instruction_of_n15());
}

#[test]
fn n16_takes_what_the_documents_say() {
    check_all(Version::N16);
}

#[test]
fn n17_takes_what_the_documents_say() {
    check_all(Version::N17);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let rig = Rig::of(Version::N16);
    let mut request = rig.demo();
    remove_first(&mut request["state"]);
    request["embodiment"] = json!("libero");
    request["instruction"] = json!("");
    request["images"]["other"] = json!("");
    let answer = rig.predict(&request);
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["detail"]["errors"].as_array().expect("errors").len(), 4);
}

/// Fields and shapes of an answer, as the documents have them.
#[test]
fn answers_have_the_fields_of_the_documents() {
    for (version, horizon, seed, dtype) in [
        (Version::N15, 16, 0, "float64"),
        (Version::N16, 16, 42, "float32"),
        (Version::N17, 40, 42, "float32"),
    ] {
        let rig = Rig::of(version);
        let mut request = rig.demo();
        without_noise(&mut request);
        let answer = rig.predict(&request).chunk();
        let keys: Vec<&str> =
            answer.as_object().expect("fields").keys().map(String::as_str).collect();
        let mut expected = vec![
            "actions",
            "action_horizon",
            "action_keys",
            "action_dims",
            "normalized",
            "embodiment",
            "embodiment_id",
            "version",
            "model",
            "layout",
            "images",
            "seq_len",
            "prompt_tokens",
            "state_dtype",
            "noise_source",
            "seed",
            "timing_ms",
        ];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(answer["action_horizon"], horizon);
        assert_eq!(answer["version"], version.name());
        assert_eq!(answer["seed"], seed);
        assert_eq!(answer["state_dtype"], dtype);
        assert_eq!(answer["normalized"], false);
        let model = rig.ready();
        assert_eq!(answer["embodiment_id"], model.embodiment.slot);
        for group in &model.embodiment.action {
            let rows = answer["actions"][&group.name].as_array().expect("rows");
            assert_eq!(rows.len(), horizon, "{}", group.name);
            assert!(rows.iter().all(|row| row.as_array().expect("a row").len() == group.dim));
            assert_eq!(answer["action_dims"][&group.name], group.dim);
        }
        let times: Vec<&str> =
            answer["timing_ms"].as_object().expect("times").keys().map(String::as_str).collect();
        assert_eq!(times, ["decode", "decode_actions", "device", "encode", "total"]);
        for received in answer["images"].as_object().expect("cameras").values() {
            assert_eq!(received["frames"], model.embodiment.frame_deltas.len());
            assert_eq!(received["vit_grid_thw"].is_array(), version == Version::N17);
        }
        let seq_len = answer["seq_len"].as_u64().expect("a number");
        let prompt_tokens = answer["prompt_tokens"].as_u64().expect("a number");
        assert!((1..seq_len).contains(&prompt_tokens), "{prompt_tokens} of {seq_len}");

        request["return_normalized"] = json!(true);
        let answer = rig.predict(&request).chunk();
        let shape = |name: &str| {
            let rows = answer[name].as_array().expect(name);
            [rows.len(), rows[0].as_array().expect("a row").len()]
        };
        assert_eq!(shape("action_pred_normalized"), model.noise_shape);
        assert_eq!(shape("action_pred_valid_hd"), [horizon, model.embodiment.action_dim()]);
    }
}

/// What Python's `json` writes for such numbers is no JSON, and the documents' server takes it for a number.
#[test]
fn numbers_that_are_not_finite_are_refused_as_such() {
    let rig = Rig::of(Version::N16);
    let demo = rig.demo();
    for value in ["NaN", "Infinity", "-Infinity", "1e999"] {
        let mut request = demo.clone();
        group(&mut request)[0] = json!("HERE");
        let answer = rig.post(request.to_string().replace("\"HERE\"", value).as_bytes());
        assert_eq!(answer.status, 400, "{value}: {}", answer.text());
        assert!(answer.text().contains("every number must be finite"), "{}", answer.text());
    }
}

#[test]
fn bodies_that_are_no_json_are_refused_as_such() {
    let rig = Rig::of(Version::N16);
    for body in [&b""[..], b"{", b"pear", b"\xff\xfe", b"[]", b"null", b"{} {}"] {
        let answer = rig.post(body);
        assert_eq!(answer.status, 422, "{body:?}: {}", answer.text());
    }
    // The values of an object without their names.
    let request = rig.demo();
    let values = ["images", "state", "instruction"].map(|name| request[name].clone());
    let list = Value::from([values.to_vec(), vec![Value::Null; 5]].concat());
    let answer = rig.post(list.to_string().as_bytes());
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("the body is a list"), "{}", answer.text());
    let twice = r#"{"images": {"a": "", "a": ""}, "state": {}, "prompt": "x"}"#;
    let answer = rig.post(twice.as_bytes());
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("the key 'a' stands twice"), "{}", answer.text());
}

#[test]
fn what_a_client_writes_comes_back_in_one_short_line() {
    let rig = Rig::of(Version::N16);
    let name = format!("x\n{}", "a".repeat(4 << 20));
    let mut unknown_field = rig.demo();
    unknown_field[&name] = Value::Null;
    let mut unknown_camera = rig.demo();
    unknown_camera["images"][&name] = "".into();
    for (request, status) in [(unknown_field, 422), (unknown_camera, 400)] {
        let answer = rig.predict(&request);
        assert_eq!(answer.status, status);
        assert!(answer.body.len() < 8000, "{} bytes", answer.body.len());
        assert!(answer.text().contains("aaa ... "), "{}", answer.text());
    }
}

#[test]
fn other_encodings_of_a_body_are_refused() {
    let rig = Rig::of(Version::N16);
    let body = rig.demo().to_string();
    for (header, status) in [
        ("Content-Type: application/json; charset=utf-16", 415),
        ("Content-Type: application/json\r\nContent-Encoding: gzip", 415),
        ("Content-Type: text/plain", 415),
        ("Content-Type: Application/JSON; charset=\"UTF-8\"", 200),
    ] {
        let head = format!("POST /predict HTTP/1.1\r\n{header}\r\n");
        assert_eq!(exchange(rig.address, &head, body.as_bytes()).status, status, "{header}");
    }
}

#[test]
fn a_state_that_is_no_pose_is_refused_before_anything_is_computed() {
    let rig = Rig::of(Version::N17);
    let mut request = rig.demo();
    let pose = &mut request["state"]["eef_9d"];
    *pose = vec![0.0; pose.as_array().expect("a pose").len()].into();
    let answer = rig.predict(&request);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("state group 'eef_9d'"), "{}", answer.text());
}
