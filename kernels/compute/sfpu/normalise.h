// Values of a tile normalised by what is known of their rows, and scaled by what is known of their columns.
#pragma once

#include "lanes.h"
#include "pass.h"
#include "round.h"
#include "slot.h"

namespace lanes {

// What happens to `(x - mean) * factor`, in this order.
struct Scaling {
    // Whether the mean is taken off at all.
    bool is_centred;
    // Times gain, or times one more than gain.
    bool has_gain;
    bool is_gain_beyond_one;
    // Plus shift.
    bool has_shift;
    // Rounded to what bf16 can hold.
    bool is_bf16;
};

// Tiles of dest: means and factors (moments.h), and vectors that have the value of each column in their first four rows.
constexpr uint32_t VALUES = 0;
constexpr uint32_t MOMENTS = 1;
constexpr uint32_t GAIN = 2;
constexpr uint32_t SHIFT = 3;

inline void normalise(const Scaling& scaling) {
    each_slot([&](uint32_t group, uint32_t quarter) {
        const uint32_t x = slot(VALUES, group, quarter);
        load<L0>(x);
        if (scaling.is_centred) {
            load<L1>(slot(MOMENTS, group, 0));
            subtract<L0, L1, L0>();
        }
        load<L1>(slot(MOMENTS, group, 1));
        multiply<L0, L1, L0>();
        if (scaling.has_gain) {
            load<L1>(slot(GAIN, 0, quarter));
            if (scaling.is_gain_beyond_one) {
                add<L1, ONE, L1>();
            }
            multiply<L0, L1, L0>();
        }
        if (scaling.has_shift) {
            load<L1>(slot(SHIFT, 0, quarter));
            add<L0, L1, L0>();
        }
        if (scaling.is_bf16) {
            round_to_bf16();
        }
        store<L0>(x);
    });
}

}  // namespace lanes
