// In place of the compute kernel: applies one function of the vector unit to every value of some tiles of f32, which lie
// at the start of L1, in place. Compile-time arguments: the function, and the number of tiles.
#include <cstdint>

#include "api/compute/common.h"
#include "../compute/launch.h"
#include "../compute/tile.h"
#ifdef TRISC_MATH
#include "../compute/sfpu/activation.h"
#include "../compute/sfpu/pass.h"
#include "../compute/sfpu/reciprocal.h"
#include "../compute/sfpu/round.h"
#include "../compute/sfpu/rsqrt.h"

// In the order that `test_functions.py` has; behind them come the activations.
enum Function : uint32_t { EXP, RECIPROCAL, RSQRT, ERF, LOGISTIC_OF_NEGATIVE, ROUND, ACTIVATION };

template <uint32_t FUNCTION>
inline void apply(uint32_t slot) {
    using namespace lanes;
    load<L0>(slot);
    if constexpr (FUNCTION == EXP) {
        copy<L0, L5>();
        exp();
        keep_not_a_number<L5, L0>();
    } else if constexpr (FUNCTION == RECIPROCAL) {
        copy<L0, L1>();
        reciprocal<L1, L0, L2>();
    } else if constexpr (FUNCTION == RSQRT) {
        rsqrt();
    } else if constexpr (FUNCTION == ERF) {
        erf();
    } else if constexpr (FUNCTION == LOGISTIC_OF_NEGATIVE) {
        logistic_of_negative();
    } else if constexpr (FUNCTION == ROUND) {
        identity(slot);
        round_to_bf16();
    } else {
        activate(FUNCTION - ACTIVATION, slot);
    }
    store<L0>(slot);
}
#endif

void kernel_main() {
    const semaphores::Semaphores semaphores = {compute::semaphores_base(), semaphores::COMPUTE, {}};
    semaphores::await_start(semaphores);
    compute::begin_kernel();
    MATH((lanes::begin_kernel()));
    for (uint32_t tile = 0; tile < get_compile_time_arg_val(1); ++tile) {
        const uint32_t address = arguments::l1(tile * lowered::tile_bytes(lowered::F32));
        compute::begin_section();
        compute::load_tile(address, lowered::F32, 0);
#ifdef TRISC_MATH
        lanes::begin();
        lanes::each_slot([](uint32_t group, uint32_t quarter) {
            apply<get_compile_time_arg_val(0)>(lanes::slot(0, group, quarter));
        });
        lanes::end();
#endif
        compute::begin_packing();
        compute::store_tile(0, address, lowered::F32);
        compute::end_section();
    }
}
