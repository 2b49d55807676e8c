//! The files of a replay.

use std::fs;
use std::path::Path;

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::replay::{self, Bound, Given, Pace, Request};

use super::rig::{Rig, run};

fn request(rig: &Rig) -> Request {
    Request {
        bag: Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pear_to_plate"),
        instructions: Given { first: Some("<b>pick</b> & \"place\"".to_owned()), later: vec![] },
        pace: Pace::Rate(2.0),
        bounds: vec!["chunks>=1000".parse::<Bound>().expect("a bound")],
        ..rig.request("gr1.yaml", "none", &[])
    }
}

#[test]
fn two_runs_write_the_same_report_and_chunks() {
    let rig = Rig::new(Version::N16);
    let names: Vec<Vec<String>> = ["a", "b"]
        .iter()
        .map(|name| replay::write(&run(&request(&rig)), &rig.path(name)).expect("written"))
        .collect();
    assert_eq!(names[0], names[1]);
    for file in ["report.json", "chunks.safetensors"] {
        let [a, b] = ["a", "b"].map(|name| fs::read(rig.path(name).join(file)).expect(file));
        assert!(a == b, "{file}");
    }
    for file in ["latency.json", "report.html", "ages.png", "latency.png", "actions_waist.png"] {
        assert!(names[0].iter().any(|name| name == file), "{file} is not among {:?}", names[0]);
        assert!(rig.path("a").join(file).is_file(), "{file}");
    }
    for name in names[0].iter().filter(|name| name.ends_with(".png")) {
        let picture = image::open(rig.path("a").join(name)).expect(name).to_rgb8();
        let first = picture.get_pixel(0, 0);
        assert!(picture.pixels().any(|pixel| pixel != first), "{name} is empty");
    }
}

#[test]
fn the_chunk_file_holds_every_value() {
    let rig = Rig::new(Version::N16);
    let replay = run(&request(&rig));
    let tensors = safetensors::SafeTensors::deserialize(&replay.chunks).expect("safetensors");
    let waist = tensors.tensor("actions.waist").expect("a group");
    let count = replay.predicted().len();
    assert_eq!(waist.shape(), [count, 16, 3]);
    let stored: Vec<u8> = replay
        .predicted()
        .iter()
        .flat_map(|p| &p.chunk.groups.iter().find(|g| g.name == "waist").expect("it").values)
        .flat_map(|value| value.to_le_bytes())
        .collect();
    assert_eq!(waist.data(), stored);
}

#[test]
fn the_page_is_whole_and_holds_no_foreign_markup() {
    let rig = Rig::new(Version::N16);
    replay::write(&run(&request(&rig)), &rig.path("out")).expect("written");
    let page = fs::read_to_string(rig.path("out").join("report.html")).expect("a page");
    assert!(
        page.contains("&lt;b&gt;pick&lt;/b&gt; &amp; &quot;place&quot;") && !page.contains("<b>")
    );
    for foreign in ["http:", "https:", "src=", "href=", "<script", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // Every element that begins also ends, in order.
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let name = tag.split([' ', '>', '\n']).next().unwrap_or_default();
        let is_closed = tag.split('>').next().is_some_and(|tag| tag.ends_with('/'));
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if is_closed || name == "meta" || name.starts_with('!') => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, [] as [&str; 0]);
    // One diagram per dimension of the chunk, one of ages and one of latencies, besides those of the legends.
    let diagrams = page.matches("role=\"img\"").count();
    assert_eq!(diagrams, 29 + 2);
    assert!(page.contains("<li class=\"bad\">BROKEN: chunks &gt;= 1000; measured 9.</li>"));
}
