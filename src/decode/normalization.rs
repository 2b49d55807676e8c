//! From the model's range of values to physical units.

use super::{DecodeError, single};
use crate::contract::{ActionGroupSpec, ActionNormalization};

/// Physical values of one group, `[horizon, spec.dim]`, from the group's `normalized` values in the same order.
///
/// # Errors
/// Statistics that are not as long as the group is wide, or as the group over the horizon; numbers that are no rotation
/// where one is needed.
pub(super) fn denormalize<'a>(
    spec: &ActionGroupSpec,
    horizon: usize,
    normalized: impl Iterator<Item = &'a f32>,
) -> Result<Vec<f64>, DecodeError> {
    let each_step = horizon.saturating_mul(spec.dim);
    type Inverse = fn(f32, f64, f64) -> f64;
    let (inverse, first, second, expected): (Inverse, _, _, _) = match &spec.normalization {
        ActionNormalization::MinMax { min, max } => (from_range, min, max, spec.dim),
        ActionNormalization::MinMaxPerStep { min, max } => (from_range, min, max, each_step),
        ActionNormalization::MeanStd { mean, std } => (from_standard, mean, std, spec.dim),
        ActionNormalization::MeanStdPerStep { mean, std } => (from_standard, mean, std, each_step),
        ActionNormalization::Single { scaling, euler } => {
            return single::denormalize(spec, scaling, *euler, normalized);
        }
    };
    if let Some(wrong) = [first, second].into_iter().find(|values| values.len() != expected) {
        let group = spec.name.clone();
        return Err(DecodeError::Statistics { group, expected, found: wrong.len() });
    }
    // Statistics of one step repeat at every step; those of every step are as long as the values.
    let statistics = first.iter().cycle().zip(second.iter().cycle());
    Ok(normalized
        .zip(statistics)
        .map(|(&x, (&first, &second))| inverse(x, first, second))
        .collect())
}

/// [-1, 1] to `[min, max]`; what lies outside is clipped. The fraction is f32, the rest f64, as in the reference.
fn from_range(x: f32, min: f64, max: f64) -> f64 {
    let fraction = (x.clamp(-1.0, 1.0) + 1.0) / 2.0;
    f64::from(fraction) * (max - min) + min
}

/// Standard scores to values, unclipped. The reference keeps these in f32.
fn from_standard(x: f32, mean: f64, std: f64) -> f64 {
    let value = if std == 0.0 { x } else { (f64::from(x) * std + mean) as f32 };
    f64::from(value)
}
