"""What the matrix engine makes of operands, and how far its sums are from those of real numbers."""

import numpy as np
from blocks import Values, from_bf16, round_to_bf16

#: Bits of values and of weights, as bf16, that take part.
MASKS = {"LoFi": (0xFFFE, 0xFFF8), "HiFi2": (0xFFFE, 0xFFFF), "HiFi4": (0xFFFF, 0xFFFF)}


def product(x: Values, weights: Values, fidelity: str = "HiFi2") -> Values:
    """Of what is left of the operands, without any rounding."""
    value_mask, weight_mask = MASKS[fidelity]
    left = from_bf16(round_to_bf16(x) & np.uint16(value_mask)).astype(np.float64)
    right = from_bf16(round_to_bf16(weights) & np.uint16(weight_mask)).astype(np.float64)
    sums: Values = left @ right
    return sums


#: Products that the engine adds at a time, and the bits below the largest of them that it keeps.
GROUP, KEPT_BITS = 8, 10


def exponents(values: Values) -> Values:
    """Of zeros, one that no other value here comes near."""
    found: Values = np.frexp(np.where(values == 0, 1e-30, values))[1] - 1
    return found


def engine_error(x: Values, weights: Values) -> Values:
    """How far sums of the matrix engine may be off: six standard deviations.

    It aligns eight products at a time with the largest of them and rounds them there, to so many bits; the sums of such
    groups are added in f32."""
    left, right = exponents(x), exponents(weights)
    variance = np.zeros((x.shape[0], weights.shape[1]))
    for first in range(0, x.shape[1], GROUP):
        products = left[:, first : first + GROUP, None] + right[None, first : first + GROUP]
        unit = np.exp2(products.max(axis=1).astype(np.float64) - KEPT_BITS)
        variance += GROUP * unit**2 / 12
    return 6 * np.sqrt(variance)
