//! What holds for every arena.

use std::collections::HashMap;
use std::sync::LazyLock;

use gr00t_blackhole::backend::blackhole::arena::{
    ALIGNMENT, ArenaPlan, Blob, PACKET_BYTES, PartSpec, PlannedPart, StreamSpec,
};
use gr00t_blackhole::backend::blackhole::numerics::{MatrixView, pack_matrix, tile};
use gr00t_blackhole::program::{Orientation, WeightSpec};
use proptest::prelude::*;

use super::rig::{self, COMPRESSED, Drawn, PLAIN, blob, part, plan, stream};

/// Values of each of its tensors: room for the largest block below.
const VALUES: usize = 1000 + 700 * 70;
static DRAWN: LazyLock<Drawn> = LazyLock::new(|| Drawn::new(VALUES));

fn weights() -> impl Strategy<Value = Vec<WeightSpec>> {
    let weight = (any::<bool>(), any::<bool>(), 0..1000usize, 1..700usize, 1..70usize).prop_map(
        |(compressed, turned, offset, long, short)| WeightSpec {
            tensor: if compressed { COMPRESSED } else { PLAIN }.to_owned(),
            offset,
            rows: if turned { long } else { short },
            cols: if turned { short } else { long },
            orientation: if turned { Orientation::InOut } else { Orientation::OutIn },
        },
    );
    prop::collection::vec(weight, 1..5)
}

/// A stream of shards of any of the weights, in any order.
fn streams(weights: Vec<WeightSpec>) -> impl Strategy<Value = Vec<StreamSpec>> {
    let shard = (0..3u32, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let stream = (0..20u32, 0..8u8, prop::collection::vec(shard, 1..8)).prop_map(
        move |(consumer, bank, shards)| {
            let mut order = 0;
            let shards: Vec<(u32, usize, usize)> = shards
                .into_iter()
                .map(|(later, weight, column)| {
                    order += later;
                    let id = weight.index(weights.len());
                    let columns = weights[id].outputs().div_ceil(tile::SIDE);
                    (order, id, column.index(columns))
                })
                .collect();
            stream(consumer, bank, &shards)
        },
    );
    prop::collection::vec(stream, 1..12)
}

#[derive(Clone, Debug)]
struct Case {
    weights: Vec<WeightSpec>,
    parts: Vec<PartSpec>,
    blobs: Vec<Blob>,
}

fn case() -> impl Strategy<Value = Case> {
    let blobs = prop::collection::vec((0..8u8, 1..300usize), 0..4);
    (weights(), blobs).prop_flat_map(|(weights, blobs)| {
        let parts = prop::collection::vec((streams(weights.clone()), any::<bool>()), 1..3);
        parts.prop_map(move |parts| {
            let parts = parts.into_iter().enumerate();
            let blobs = blobs.iter().enumerate();
            Case {
                weights: weights.clone(),
                parts: parts
                    .map(|(i, (streams, short))| part(&format!("part {i}"), short, streams))
                    .collect(),
                blobs: blobs
                    .map(|(i, (bank, len))| {
                        blob(&format!("blob {i}"), *bank, &vec![i as u8 + 1; *len])
                    })
                    .collect(),
            }
        })
    })
}

/// Sizes of the tiles of a stream in each of its packets, tile by tile.
fn packets_by_tile(part: &PlannedPart, stream: usize) -> Vec<Vec<u64>> {
    let mut packets: Vec<Vec<u64>> = vec![vec![]];
    for shard in &part.streams[stream].shards {
        let bytes = shard.format.tile_bytes() as u64;
        for _ in 0..shard.tiles {
            let used: u64 = packets[packets.len() - 1].iter().sum();
            if used + bytes > PACKET_BYTES {
                packets.push(vec![]);
            }
            packets.last_mut().unwrap().push(bytes);
        }
    }
    packets
}

fn check_streams(part: &PlannedPart) {
    for (number, stream) in part.streams.iter().enumerate() {
        let expected = packets_by_tile(part, number);
        let found: Vec<_> = part.stream_packets(number).collect();
        assert_eq!(found.len(), expected.len());
        for (place, (packet, tiles)) in found.iter().zip(&expected).enumerate() {
            assert_eq!((packet.stream, packet.number, packet.bank), (number, place, stream.bank));
            assert_eq!((packet.tiles(), packet.payload), (tiles.len(), tiles.iter().sum()));
            let last = place + 1 == expected.len();
            let bytes = if last && part.short_last { packet.payload } else { PACKET_BYTES };
            assert_eq!(packet.bytes, bytes, "both tiles are multiples of 64 bytes");
            assert_eq!(packet.order, stream.shards[packet.runs[0].shard].order);
        }
        let runs = found.iter().flat_map(|packet| &packet.runs);
        let tiles: Vec<(usize, usize)> = runs
            .flat_map(|run| (run.first..run.first + run.tiles).map(|tile| (run.shard, tile)))
            .collect();
        let shards = stream.shards.iter().enumerate();
        let all = shards.flat_map(|(shard, about)| (0..about.tiles).map(move |tile| (shard, tile)));
        assert!(tiles.into_iter().eq(all), "every tile once, in its order");
    }
}

/// Nothing overlaps, and nothing else lies in a bank but what aligns the next thing.
fn check_banks(plan: &ArenaPlan) {
    for bank in 0..8 {
        let mut end = 0;
        for part in plan.parts() {
            let packets = part.packets(bank);
            if packets.is_empty() {
                continue;
            }
            end = u64::next_multiple_of(end, PACKET_BYTES);
            assert_eq!(part.range(bank).start, end);
            for packet in packets {
                assert_eq!((packet.offset, packet.bank), (end, bank));
                end += packet.bytes;
            }
            assert_eq!(part.range(bank).end, end);
            let consumer = |stream: usize| part.streams[stream].consumer;
            assert!(packets.is_sorted_by_key(|p| (p.order, p.number, consumer(p.stream))));
        }
        for blob in plan.blobs().iter().filter(|blob| blob.bank == bank) {
            end = end.next_multiple_of(ALIGNMENT);
            assert_eq!(blob.offset, end);
            end += blob.bytes.len() as u64;
        }
        assert_eq!(plan.bank_bytes(bank), end.next_multiple_of(ALIGNMENT));
    }
}

/// Every shard is that column of the whole matrix, tile by tile.
fn check_bytes(case: &Case, plan: &ArenaPlan) {
    let arena = plan.image(&DRAWN.checkpoint).unwrap();
    let mut packed: HashMap<usize, Vec<u8>> = HashMap::new();
    for part in plan.parts() {
        for (number, stream) in part.streams.iter().enumerate() {
            for (shard, found) in stream.shards.iter().zip(rig::shards_of(&arena, part, number)) {
                let spec = &case.weights[shard.weight.0];
                let whole = packed.entry(shard.weight.0).or_insert_with(|| {
                    let values = DRAWN.checkpoint.tensor(&spec.tensor).unwrap().values;
                    let stored =
                        MatrixView::new(&values[spec.offset..], spec.rows, spec.cols, spec.cols);
                    let mut matrix = stored.unwrap();
                    if spec.orientation == Orientation::OutIn {
                        matrix = matrix.transposed();
                    }
                    let bytes = shard.format.matrix_bytes(matrix.rows(), matrix.cols()).unwrap();
                    let mut target = vec![0; bytes];
                    pack_matrix(matrix, shard.format, &mut target, &|_, _| ()).unwrap();
                    target
                });
                let columns = spec.outputs().div_ceil(tile::SIDE);
                let tiles = whole.chunks_exact(shard.format.tile_bytes());
                let expected = tiles.skip(shard.column_tile).step_by(columns);
                assert!(expected.flatten().eq(&found), "{shard:?} of {spec:?}");
            }
        }
    }
    for blob in plan.blobs() {
        assert_eq!(arena.blob(&blob.name), Some(blob.bytes.as_slice()));
        let behind = &arena.bank(blob.bank)[blob.offset as usize + blob.bytes.len()..];
        let padding = behind.len() % ALIGNMENT as usize;
        assert!(behind[..padding].iter().all(|byte| *byte == 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_and_nothing_overlaps(case in case()) {
        let planned = plan(&case.weights, &case.parts, case.blobs.clone()).unwrap();
        planned.parts().iter().for_each(check_streams);
        check_banks(&planned);
        check_bytes(&case, &planned);
        let again = plan(&case.weights, &case.parts, case.blobs.clone()).unwrap();
        prop_assert!(planned == again);
        let report = planned.report();
        prop_assert_eq!(report.payload + report.padding, planned.bytes());
    }
}
