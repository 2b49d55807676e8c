//! Sizes, as numbers, as JSON and as a table.

use super::rig::{COMPRESSED, PLAIN, blob, part, plan, stream, weight};

#[test]
fn sizes_are_those_of_the_plan() {
    let weights = [weight(COMPRESSED, 16 * 32, 64), weight(PLAIN, 32, 32)];
    let streams = vec![
        // 32 tiles of bfp8_b: packets of 15, 15 and 2 tiles.
        stream(0, 0, &[(0, 0, 0), (0, 0, 1)]),
        stream(1, 1, &[(0, 1, 0)]),
    ];
    let parts =
        [part("per_step", true, streams), part("vision", false, vec![stream(0, 1, &[(0, 1, 0)])])];
    let plan = plan(&weights, &parts, vec![blob("bias", 3, &[1; 100])]).unwrap();
    let report = plan.report();

    let step = &report.parts[0];
    assert_eq!((step.streams, step.packets), (2, 4));
    assert_eq!(step.payload, 32 * 1088 + 2048);
    assert_eq!(step.padding, 2 * 64);
    assert_eq!(step.packet_bytes.banks[..3], [2 * 16_384 + 2 * 1088, 2048, 0]);
    assert_eq!(step.packet_bytes.bytes, step.payload + step.padding);
    let balance = 8.0 * 34_944.0 / 36_992.0;
    assert!((step.packet_bytes.balance - balance).abs() < 1e-12);
    let formats: Vec<_> =
        step.formats.iter().map(|(name, f)| (*name, f.shards, f.tiles, f.bytes)).collect();
    assert_eq!(formats, [("bf16", 1, 1, 2048), ("bfp8_b", 2, 32, 34_816)]);

    let vision = &report.parts[1];
    assert_eq!((vision.packet_bytes.bytes, vision.payload, vision.padding), (16_384, 2048, 14_336));
    assert_eq!((report.blob_count, report.blobs.bytes, report.blobs.banks[3]), (1, 100, 100));
    assert_eq!(report.total.banks[..4], [34_944, 32_768, 0, 128]);
    assert_eq!(report.total.bytes, plan.bytes());
    assert_eq!(report.payload, step.payload + vision.payload + 100);
    assert_eq!(report.padding, plan.bytes() - report.payload);

    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["policy"], "mixed_dit");
    assert_eq!(json["parts"][0]["formats"]["bfp8_b"]["tiles"], 32);
    assert_eq!(json["total"]["banks"][0], 34_944);

    let table = report.to_string();
    let columns = |name: &str| -> Vec<&str> {
        let line = table.lines().find(|line| line.starts_with(name)).expect("a line");
        line.split_whitespace().collect()
    };
    assert_eq!(
        columns("per_step ")[..6],
        ["per_step", "0.037", "0.000", "7.557", "0.035", "0.002"]
    );
    assert_eq!(columns("vision ")[..4], ["vision", "0.016", "0.014", "8.000"]);
    assert_eq!(columns("all ").len(), 4 + 8);
    assert!(table.contains("per_step: bfp8_b: 2 shards, 32 tiles, 0.035 MB"), "{table}");
}
