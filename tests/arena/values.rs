//! What lies in an arena is what the whole matrices are packed to.

use gr00t_blackhole::backend::blackhole::arena::{
    Arena, ArenaError, ArenaPlan, PER_REQUEST, PER_STEP, PlannedPart,
};
use gr00t_blackhole::backend::blackhole::numerics::{
    DtypePolicy, MatrixView, TileFormat, pack_matrix, tile, unpack_matrix,
};
use gr00t_blackhole::checkpoint::Checkpoint;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::{Orientation, WeightSpec};

use super::rig::{self, Drawn, Model, PLAIN, part, plan, spread, stream, weight};

/// A matrix as rows are multiplied by it, `[inputs, outputs]`, after a way through its tiles.
fn dequantised(checkpoint: &Checkpoint, spec: &WeightSpec, format: TileFormat) -> Vec<f32> {
    let values = &checkpoint.tensor(&spec.tensor).unwrap().values[spec.offset..];
    let view = MatrixView::new(values, spec.rows, spec.cols, spec.cols).unwrap();
    let view = match spec.orientation {
        Orientation::OutIn => view.transposed(),
        Orientation::InOut => view,
    };
    let (inputs, outputs) = (view.rows(), view.cols());
    let mut packed = vec![0; format.matrix_bytes(inputs, outputs).unwrap()];
    pack_matrix(view, format, &mut packed, &|_, _| ()).unwrap();
    let mut values = vec![0.0; inputs * outputs];
    unpack_matrix(&packed, format, inputs, outputs, &mut values).unwrap();
    values
}

/// Compares every shard of a part with the columns of its matrix, bit by bit; tells how many there were.
fn check(
    arena: &Arena,
    part: &PlannedPart,
    weights: &[WeightSpec],
    matrices: &[Option<Vec<f32>>],
) -> usize {
    let mut checked = 0;
    for (number, stream) in part.streams.iter().enumerate() {
        for (shard, tiles) in stream.shards.iter().zip(rig::shards_of(arena, part, number)) {
            let spec = &weights[shard.weight.0];
            let matrix = matrices[shard.weight.0].as_ref().expect("the weight of a product");
            let (inputs, outputs) = (spec.inputs(), spec.outputs());
            let first = shard.column_tile * tile::SIDE;
            let width = tile::SIDE.min(outputs - first);
            let mut found = vec![f32::NAN; inputs * width];
            unpack_matrix(&tiles, shard.format, inputs, width, &mut found).unwrap();
            let expected = (0..inputs).flat_map(|row| &matrix[row * outputs + first..][..width]);
            assert!(
                expected.map(|value| value.to_bits()).eq(found.iter().map(|value| value.to_bits())),
                "column {} of {} in {:?}",
                shard.column_tile,
                spec.tensor,
                shard.format
            );
            checked += 1;
        }
    }
    checked
}

#[test]
fn every_shard_of_every_version_and_policy_holds_its_columns() {
    for version in [Version::N15, Version::N16, Version::N17] {
        let model = Model::tiny(version);
        let rules = model.rules();
        let weights = &model.request.weights;
        let products: Vec<usize> = model.product_weights();
        let (once, steps): (Vec<usize>, Vec<usize>) =
            products.iter().partition(|id| rules.per_request.contains(&weights[**id]));
        let parts = [spread(PER_STEP, weights, steps, 13), spread(PER_REQUEST, weights, once, 5)];
        for policy in DtypePolicy::ALL {
            let plan = ArenaPlan::new(weights, policy, &parts, vec![], &rules).unwrap();
            let tensors = model.snapshot.tensors();
            let matrices: Vec<Option<Vec<f32>>> = (0..weights.len())
                .map(|id| {
                    let spec = &weights[id];
                    let format = policy.format(&spec.tensor);
                    products.contains(&id).then(|| dequantised(tensors, spec, format))
                })
                .collect();
            let arena = plan.image(tensors).unwrap();
            let checked: usize =
                plan.parts().iter().map(|part| check(&arena, part, weights, &matrices)).sum();
            let columns = products.iter().map(|id| weights[*id].outputs().div_ceil(tile::SIDE));
            assert_eq!(checked, columns.sum::<usize>(), "{version:?}, {}", policy.name());
        }
    }
}

#[test]
fn an_image_is_the_same_twice() {
    let model = Model::tiny(Version::N17);
    let weights = &model.request.weights;
    let parts = [spread("all", weights, model.product_weights(), 110)];
    let images = [1, 2].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let plan = plan(weights, &parts, vec![]).unwrap();
        pool.install(|| plan.image(model.snapshot.tensors()).unwrap())
    });
    for bank in 0..8 {
        assert!(images[0].bank(bank) == images[1].bank(bank), "bank {bank}");
    }
}

#[test]
fn weights_that_the_checkpoint_lacks_are_refused() {
    let drawn = Drawn::new(32 * 32);
    let image = |spec: WeightSpec| {
        let parts = [part("p", true, vec![stream(0, 0, &[(0, 0, 0)])])];
        plan(&[spec], &parts, vec![]).unwrap().image(&drawn.checkpoint)
    };
    assert!(image(weight(PLAIN, 32, 32)).is_ok());
    let beyond = image(WeightSpec { offset: 1, ..weight(PLAIN, 32, 32) }).unwrap_err();
    assert!(
        matches!(beyond, ArenaError::WeightValues { first: 1, end: 1025, found: 1024, .. }),
        "{beyond}"
    );
    let missing = image(weight("nowhere", 32, 32)).unwrap_err();
    assert!(matches!(missing, ArenaError::Checkpoint(_)), "{missing}");
}
