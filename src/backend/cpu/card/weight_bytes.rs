//! How much memory the weights of a program take.

use half::bf16;

use super::factors;
use crate::backend::blackhole::numerics::{DtypePolicy, NumericsError, TileFormat};
use crate::program::{Program, WeightId};

/// Memory that the weights of a program take, by what they are kept as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightBytes {
    /// Of products, with what fills their last tiles: format and bytes. Formats that no weight has are left out.
    pub products: Vec<(TileFormat, u64)>,
    /// Norms, biases, embeddings and tables: bf16 as in the checkpoint.
    pub others: u64,
}

/// What the weights of `program` take under a policy.
///
/// # Errors
/// More than can be addressed.
pub fn weight_bytes(program: &Program, policy: DtypePolicy) -> Result<WeightBytes, NumericsError> {
    let factors = factors(program);
    let mut products = TileFormat::ALL.map(|format| (format, 0)).to_vec();
    let mut others = 0;
    for (number, spec) in program.weights.iter().enumerate() {
        if !factors.contains(&WeightId(number)) {
            others += (size_of::<bf16>() * spec.rows * spec.cols) as u64;
            continue;
        }
        let format = policy.format(&spec.tensor);
        let bytes = format.matrix_bytes(spec.inputs(), spec.outputs())? as u64;
        let known = products.iter_mut().find(|(known, _)| *known == format);
        known.into_iter().for_each(|(_, sum)| *sum += bytes);
    }
    products.retain(|(_, bytes)| *bytes > 0);
    Ok(WeightBytes { products, others })
}

#[cfg(test)]
mod tests {
    use super::super::testing::request;
    use super::*;
    use crate::contract::Version;

    #[test]
    fn policies_move_bytes_from_one_format_to_the_other() {
        for version in Version::ALL {
            let program = request(version);
            let bytes = |policy| weight_bytes(&program, policy).expect("tiny");
            let plain = bytes(DtypePolicy::Bf16);
            let [(TileFormat::Bf16, all)] = plain.products[..] else { panic!("{plain:?}") };
            let mut compressed = Vec::new();
            for policy in [DtypePolicy::MixedDit, DtypePolicy::Mixed] {
                let found = bytes(policy);
                assert_eq!(found.others, plain.others);
                let [(TileFormat::Bf16, rest), (TileFormat::Bfp8B, blocks)] = found.products[..]
                else {
                    panic!("{found:?}")
                };
                let (bf16, bfp8) =
                    (TileFormat::Bf16.tile_bytes() as u64, TileFormat::Bfp8B.tile_bytes() as u64);
                assert_eq!(rest + blocks / bfp8 * bf16, all);
                compressed.push(blocks);
            }
            assert!(compressed[0] < compressed[1], "{compressed:?}");
        }
    }
}
