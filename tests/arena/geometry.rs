//! Small cases, counted by hand.

use gr00t_blackhole::backend::blackhole::arena::{
    ArenaError, ArenaPlan, Blob, HoistRules, Packet, PartSpec,
};
use gr00t_blackhole::backend::blackhole::numerics::{DtypePolicy, TileFormat};
use gr00t_blackhole::program::{Orientation, WeightSpec};

use super::rig::{COMPRESSED, PLAIN, blob, part, plan, stream, weight};

/// Tiles and bytes of tiles, and of the whole, for every packet of a stream.
fn sizes(plan: &ArenaPlan, stream: usize) -> Vec<(usize, u64, u64)> {
    let packets = plan.parts()[0].stream_packets(stream);
    packets.map(|packet| (packet.tiles(), packet.payload, packet.bytes)).collect()
}

/// One stream, of shards of one order each.
fn alone(weights: &[WeightSpec], shards: &[(u32, usize, usize)], short_last: bool) -> ArenaPlan {
    plan(weights, &[part("p", short_last, vec![stream(0, 0, shards)])], vec![]).unwrap()
}

#[test]
fn bf16_tiles_fill_packets_without_rest() {
    // 256 inputs are 8 tiles, 16,384 bytes.
    let whole = alone(&[weight(PLAIN, 256, 32)], &[(0, 0, 0)], true);
    assert_eq!(sizes(&whole, 0), [(8, 16_384, 16_384)]);
    let more = [weight(PLAIN, 257, 32)];
    let short = alone(&more, &[(0, 0, 0)], true);
    assert_eq!(sizes(&short, 0), [(8, 16_384, 16_384), (1, 2048, 2048)]);
    let long = alone(&more, &[(0, 0, 0)], false);
    assert_eq!(sizes(&long, 0), [(8, 16_384, 16_384), (1, 2048, 16_384)]);
    assert_eq!((short.bytes(), long.bytes()), (18_432, 32_768));
}

#[test]
fn no_bfp8_tile_lies_in_two_packets() {
    // 15 tiles of 1088 bytes are 16,320; the 16th does not fit into the 64 that are left.
    let sixteen = alone(&[weight(COMPRESSED, 16 * 32, 1)], &[(7, 0, 0)], true);
    assert_eq!(sizes(&sixteen, 0), [(15, 16_320, 16_384), (1, 1088, 1088)]);
    assert_eq!(sixteen.parts()[0].streams[0].shards[0].format, TileFormat::Bfp8B);
}

#[test]
fn formats_change_within_a_packet() {
    // 14 x 1088 = 15,232: a tile of bf16 does not fit behind them, one of bfp8_b would.
    let weights = [weight(COMPRESSED, 14 * 32, 64), weight(PLAIN, 32, 32)];
    let mixed = alone(&weights, &[(0, 0, 0), (1, 1, 0), (2, 0, 1)], true);
    assert_eq!(
        sizes(&mixed, 0),
        [(14, 15_232, 16_384), (1 + 13, 2048 + 13 * 1088, 16_384), (1, 1088, 1088)]
    );
    let packets: Vec<&Packet> = mixed.parts()[0].stream_packets(0).collect();
    let runs: Vec<_> = packets[1].runs.iter().map(|r| (r.shard, r.first, r.tiles, r.at)).collect();
    assert_eq!(runs, [(1, 0, 1, 0), (2, 0, 13, 2048)]);
    let runs: Vec<_> = packets[2].runs.iter().map(|r| (r.shard, r.first, r.tiles, r.at)).collect();
    assert_eq!(runs, [(2, 13, 1, 0)]);
    assert_eq!(packets.iter().map(|packet| packet.order).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn tiles_are_counted_along_the_inputs_of_either_orientation() {
    let stored = |orientation| WeightSpec {
        tensor: PLAIN.to_owned(),
        offset: 3,
        rows: 65,
        cols: 33,
        orientation,
    };
    // `[out, in]`: 33 inputs are 2 tiles, 65 outputs 3 columns; `[in, out]`: the other way round.
    for (orientation, tiles, columns) in [(Orientation::OutIn, 2, 3), (Orientation::InOut, 3, 2)] {
        let weights = [stored(orientation)];
        let shards: Vec<_> = (0..columns).map(|column| (0, 0, column)).collect();
        let whole = alone(&weights, &shards, true);
        assert_eq!(sizes(&whole, 0)[0].0, tiles * columns);
        let beyond = part("p", true, vec![stream(5, 0, &[(0, 0, columns)])]);
        let error = plan(&weights, &[beyond], vec![]).unwrap_err();
        assert!(
            matches!(error, ArenaError::Column { consumer: 5, columns: c, .. } if c == columns),
            "{error}"
        );
    }
}

#[test]
fn packets_lie_in_the_order_of_their_need() {
    // 20 tiles of bf16: packets of 8, 8 and 4.
    let weights = [weight(PLAIN, 640, 96)];
    let streams = vec![
        stream(9, 2, &[(0, 0, 0)]),
        stream(4, 2, &[(0, 0, 1), (3, 0, 1)]),
        // The second packet begins with instruction 1.
        stream(7, 2, &[(0, 0, 2), (1, 0, 2)]),
        stream(1, 3, &[(5, 0, 0)]),
    ];
    let plan = plan(&weights, &[part("p", false, streams)], vec![]).unwrap();
    let part = plan.part("p").unwrap();
    let order = |bank| -> Vec<(u32, usize, u32)> {
        let packets = part.packets(bank).iter();
        let consumer = |packet: &Packet| part.streams[packet.stream].consumer;
        packets.map(|packet| (packet.order, packet.number, consumer(packet))).collect()
    };
    assert_eq!(
        order(2),
        [
            (0, 0, 4),
            (0, 0, 7),
            (0, 0, 9),
            (0, 1, 4),
            (0, 1, 7),
            (0, 1, 9),
            (0, 2, 4),
            (0, 2, 7),
            (0, 2, 9),
            (1, 3, 7),
            (1, 4, 7),
            (3, 3, 4),
            (3, 4, 4),
        ]
    );
    assert_eq!(order(3), [(5, 0, 1), (5, 1, 1), (5, 2, 1)]);
    let offsets: Vec<u64> = part.packets(2).iter().map(|packet| packet.offset).collect();
    assert_eq!(offsets, (0..13).map(|place| place * 16_384).collect::<Vec<_>>());
    assert_eq!((part.range(2), part.range(3), part.range(0)), (0..212_992, 0..49_152, 0..0));
    let numbers: Vec<usize> = part.stream_packets(1).map(|packet| packet.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[test]
fn parts_and_blobs_follow_one_another() {
    let weights = [weight(PLAIN, 32, 32)];
    let one = |bank| vec![stream(0, bank, &[(0, 0, 0)])];
    let parts =
        [part("first", true, one(1)), part("second", true, one(1)), part("third", true, one(0))];
    let blobs = vec![blob("a", 1, &[1; 65]), blob("b", 1, &[2; 3]), blob("c", 7, &[3])];
    let plan = plan(&weights, &parts, blobs).unwrap();
    let range = |name| plan.part(name).unwrap().range(1);
    assert_eq!((range("first"), range("second")), (0..2048, 16_384..18_432));
    assert_eq!(plan.part("third").unwrap().range(0), 0..2048);
    let offsets: Vec<u64> = plan.blobs().iter().map(|blob| blob.offset).collect();
    assert_eq!(offsets, [18_432, 18_432 + 128, 0]);
    let banks: Vec<u64> = (0..8).map(|bank| plan.bank_bytes(bank)).collect();
    assert_eq!(banks, [2048, 18_432 + 128 + 64, 0, 0, 0, 0, 0, 64]);
}

/// One stream per consumer in one part, and blobs.
fn refused(weights: &[WeightSpec], parts: &[PartSpec], blobs: Vec<Blob>) -> ArenaError {
    plan(weights, parts, blobs).expect_err("it is wrong")
}

#[test]
fn what_does_not_exist_is_refused_by_name() {
    let weights = [weight(PLAIN, 32, 32)];
    let with = |shards: &[(u32, usize, usize)], bank| {
        refused(&weights, &[part("p", true, vec![stream(3, bank, shards)])], vec![])
    };
    assert_eq!(
        with(&[(0, 1, 0)], 0).to_string(),
        "part 'p', consumer 3: there is no weight 1, the program has 1"
    );
    assert_eq!(
        with(&[(0, 0, 1)], 0).to_string(),
        format!("part 'p', consumer 3: '{PLAIN}' has 1 columns of tiles, there is no column 1")
    );
    assert!(matches!(with(&[(0, 0, 0)], 8), ArenaError::Bank { bank: 8, .. }));
    let descending = with(&[(2, 0, 0), (2, 0, 0), (1, 0, 0)], 0);
    assert!(
        matches!(descending, ArenaError::Order { consumer: 3, before: 2, order: 1, .. }),
        "{descending}"
    );
    let blob_beyond = refused(&weights, &[], vec![blob("b", 9, &[0])]);
    assert_eq!(blob_beyond.to_string(), "blob 'b': there is no bank 9, the card has 8");
}

#[test]
fn what_is_empty_or_twice_there_is_refused() {
    let weights = [weight(PLAIN, 32, 32), weight("nothing", 0, 5)];
    let good = || part("p", true, vec![stream(0, 0, &[(0, 0, 0)])]);
    let empty = |what: ArenaError| match what {
        ArenaError::Empty { what } => what,
        other => panic!("{other}"),
    };
    assert_eq!(empty(refused(&weights, &[], vec![])), "the arena");
    assert_eq!(empty(refused(&weights, &[part("q", true, vec![])], vec![])), "part 'q'");
    let nothing = part("q", true, vec![stream(1, 0, &[])]);
    assert_eq!(empty(refused(&weights, &[nothing], vec![])), "part 'q', consumer 1: its stream");
    let no_tiles = part("q", true, vec![stream(1, 0, &[(0, 1, 0)])]);
    assert_eq!(empty(refused(&weights, &[no_tiles], vec![])), "part 'q', consumer 1: 'nothing'");
    assert_eq!(empty(refused(&weights, &[good()], vec![blob("b", 0, &[])])), "blob 'b'");
    let same = refused(&weights, &[good(), good()], vec![]);
    assert!(matches!(same, ArenaError::SameName { what } if what == "part 'p'"));
    let same = refused(&weights, &[], vec![blob("b", 0, &[1]), blob("b", 1, &[1])]);
    assert!(matches!(same, ArenaError::SameName { what } if what == "blob 'b'"));
    // A shard may be used twice, and a consumer have streams in two banks.
    let twice = vec![stream(0, 0, &[(0, 0, 0), (0, 0, 0)]), stream(0, 1, &[(0, 0, 0)])];
    assert!(plan(&weights, &[part("p", true, twice)], vec![]).is_ok());
}

#[test]
fn a_bank_holds_four_gibibytes() {
    // 2^21 tiles of bf16 are exactly a bank.
    let tiles = 1 << 21;
    let streams = |consumers: u32| -> Vec<_> {
        (0..consumers).map(|consumer| stream(consumer, 6, &[(0, 0, 0)])).collect()
    };
    let weights = [weight(PLAIN, 32 * tiles / 4, 32)];
    let full = plan(&weights, &[part("p", true, streams(4))], vec![]).unwrap();
    assert_eq!(full.bank_bytes(6), 4 << 30);
    let error = refused(&weights, &[part("p", true, streams(5))], vec![]);
    assert!(
        matches!(error, ArenaError::TooLarge { bank: 6, bytes } if bytes == 5 << 30),
        "{error}"
    );
    let error = refused(&weights, &[part("p", true, streams(4))], vec![blob("b", 6, &[0])]);
    let more = (4 << 30) + 64;
    assert!(matches!(error, ArenaError::TooLarge { bank: 6, bytes } if bytes == more), "{error}");
    // More than numbers can say.
    let huge = [weight(PLAIN, usize::MAX, 32)];
    let error = refused(&huge, &[part("p", true, streams(2))], vec![]);
    assert!(matches!(error, ArenaError::TooLarge { bank: 6, .. }), "{error}");
}

#[test]
fn policies_choose_the_formats() {
    let weights = [weight(COMPRESSED, 32, 32), weight(PLAIN, 32, 32)];
    let parts = [part("p", true, vec![stream(0, 0, &[(0, 0, 0), (1, 1, 0)])])];
    let formats = DtypePolicy::ALL.map(|policy| {
        let plan =
            ArenaPlan::new(&weights, policy, &parts, vec![], &HoistRules::default()).unwrap();
        let shards = plan.parts()[0].streams[0].shards.clone();
        shards.into_iter().map(|shard| shard.format).collect::<Vec<_>>()
    });
    use TileFormat::{Bf16, Bfp8B};
    assert_eq!(formats, [[Bf16, Bf16], [Bfp8B, Bf16], [Bfp8B, Bf16]]);
}
