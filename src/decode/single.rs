//! Physical values of N1.5: f32 throughout, unclipped (spec n15 section 7).

use super::DecodeError;
use crate::contract::{ActionGroupSpec, ActionScaling, EulerOrder, RotationFormat};
use crate::rotation;

/// Physical values of one group, `[horizon, spec.dim]`, from the group's `normalized` values in the same order.
///
/// # Errors
/// Statistics that are not as long as the group is wide; axis-angle values of another width than 3, or that are
/// no rotation.
pub(super) fn denormalize<'a>(
    spec: &ActionGroupSpec,
    scaling: &ActionScaling,
    euler: Option<EulerOrder>,
    normalized: impl Iterator<Item = &'a f32>,
) -> Result<Vec<f64>, DecodeError> {
    let normalized = normalized.copied();
    let mut values: Vec<f64> = match scaling {
        ActionScaling::None => normalized.map(f64::from).collect(),
        ActionScaling::Binary => normalized.map(|x| if x > 0.5 { 1.0 } else { 0.0 }).collect(),
        ActionScaling::MinMax { min, max } => {
            let (min, max) = (rounded(spec, min)?, rounded(spec, max)?);
            let bounds = min.iter().zip(&max).cycle();
            let scaled = normalized.zip(bounds);
            scaled.map(|(x, (min, max))| f64::from((x + 1.0) / 2.0 * (max - min) + min)).collect()
        }
        ActionScaling::MeanStd { mean, std } => {
            let (mean, std) = (rounded(spec, mean)?, rounded(spec, std)?);
            let moments = mean.iter().zip(&std).cycle();
            normalized.zip(moments).map(|(x, (mean, std))| f64::from(x * std + mean)).collect()
        }
    };
    if let Some(order) = euler {
        axis_angles_to_euler(spec, order, &mut values)?;
    }
    Ok(values)
}

/// Statistics in f32, `[spec.dim]`.
fn rounded(spec: &ActionGroupSpec, statistics: &[f64]) -> Result<Vec<f32>, DecodeError> {
    if statistics.len() != spec.dim {
        let (group, found) = (spec.name.clone(), statistics.len());
        return Err(DecodeError::Statistics { group, expected: spec.dim, found });
    }
    Ok(statistics.iter().map(|&value| value as f32).collect())
}

fn axis_angles_to_euler(
    spec: &ActionGroupSpec,
    order: EulerOrder,
    values: &mut [f64],
) -> Result<(), DecodeError> {
    let format = RotationFormat::AxisAngle;
    if spec.dim != format.dim() {
        return Err(DecodeError::RotationWidth { group: spec.name.clone(), dim: spec.dim });
    }
    for (step, columns) in values.chunks_exact_mut(format.dim()).enumerate() {
        let matrix = rotation::to_matrix(format, columns).ok_or_else(|| {
            let values = columns.to_vec();
            DecodeError::Rotation { group: spec.name.clone(), step, values }
        })?;
        columns.copy_from_slice(&rotation::to_euler(order, &matrix));
    }
    Ok(())
}
