// The compute engine of a core: three RISC-V threads that run the same stream. The first one unpacks, the second one
// drives the matrix and vector units, the third one packs. An instruction is done on all of them in step:
//
// - The unpack thread is the first to see an instruction. It waits for semaphores and packets, moves values where no
//   arithmetic is needed, and begins an instruction only when what the one before it wrote is in L1.
//   Only the unpack thread may look at what lies in L1: the others may be ahead of a wait, or behind.
// - Tiles go from L1 to dest (tile.h), are worked on there, and go from dest to L1. `begin_section` and `end_section`
//   enclose the work on what dest holds at one time: DEST_TILES tiles of f32.
#pragma once
#include <cstdint>

#include "api/compute/common.h"
#include "../arguments.h"
#include "../lowered.h"
#include "../memory.h"
#include "../semaphores.h"

#ifdef TRISC_UNPACK
#include "llk_unpack_A.h"
#include "llk_unpack_AB_matmul.h"
#include "llk_unpack_common.h"
#endif
#ifdef TRISC_MATH
#include "llk_math_common.h"
#include "llk_math_eltwise_unary_datacopy.h"
#include "llk_math_eltwise_unary_sfpu_params.h"
#include "llk_math_matmul.h"
#endif
#ifdef TRISC_PACK
#include "llk_pack.h"
#include "llk_pack_common.h"
#endif

namespace compute {

using ckernel::DstSync;

// Dest holds f32 and is not divided: work and packing take turns.
static_assert(DST_ACCUM_MODE, "the kernels need fp32_dest_acc_en");
static_assert(DST_SYNC_MODE == DstSync::SyncFull, "the kernels need dst_full_sync_en");
constexpr uint32_t DEST_TILES = 8;

// What the hardware of this thread is configured for; 0 is nothing yet.
inline uint32_t configured = 0;

// Whether it has to be configured anew for `purpose`, which then is the new one.
inline bool reconfigure(uint32_t purpose) {
    if (configured == purpose) {
        return false;
    }
    configured = purpose;
    return true;
}

constexpr uint32_t llk_format(uint32_t block_format) {
    return static_cast<uint32_t>(block_format == lowered::F32 ? DataFormat::Float32 : DataFormat::Float16_b);
}

// The hardware counts L1 in units of 16 bytes, one less than the address.
constexpr uint32_t llk_address(uint32_t address) { return (address >> 4) - 1; }
constexpr uint32_t llk_bytes(uint32_t bytes) { return bytes >> 4; }

// Semaphores of the Tensix core itself between its threads; PACK_DONE counts instructions whose results are in L1.
constexpr uint8_t RESULTS = ckernel::semaphore::PACK_DONE;

inline void begin_kernel() {
    const uint32_t bf16 = llk_format(lowered::BF16);
    const uint32_t units = llk_bytes(lowered::tile_bytes(lowered::BF16));
    UNPACK((t6_semaphore_init(RESULTS, 0, 15)));
    UNPACK((_llk_unpack_hw_configure_<true>(bf16, bf16, bf16, bf16, 16, 16, 4, 4, units, units)));
    MATH((_llk_math_pack_sync_init_<DstSync::SyncFull, true>()));
    MATH((_llk_math_hw_configure_<true>(bf16, bf16)));
    PACK((_llk_pack_hw_configure_<true>(bf16, bf16, units)));
    PACK((_llk_pack_dest_init_<DstSync::SyncFull, true>()));
}

// Dest is free: math may fill it.
inline void begin_section() { MATH((_llk_math_wait_for_dest_available_<DstSync::SyncFull>())); }

// Dest is filled: math is done with it, and packing begins.
inline void begin_packing() {
    MATH((_llk_math_dest_section_done_<DstSync::SyncFull, true>()));
    PACK((_llk_packer_wait_for_math_done_()));
}

// Dest is packed and free.
inline void end_section() { PACK((_llk_pack_dest_section_done_<DstSync::SyncFull, true>())); }

// Everything packed so far is in L1 when the unpack thread returns from this. All threads have to call it.
inline void await_results() {
    PACK((tensix_sync()));
    PACK((t6_semaphore_post<p_stall::PACK>(RESULTS)));
#ifdef TRISC_UNPACK
    while (semaphore_read(RESULTS) == 0) {
    }
    semaphore_get(RESULTS);
    memory::refresh();
#endif
}

#ifdef TRISC_UNPACK
// Everything unpacked so far has been read from L1.
inline void await_unpacker() {
    TTI_STALLWAIT(p_stall::STALL_THCON, p_stall::UNPACK);
    tensix_sync();
}
#endif

// What only the unpack thread can know, since only it waits for what is in L1, it tells the others.
#ifdef TRISC_UNPACK
inline void tell_others(uint32_t word) {
    ckernel::mailbox_write(ckernel::ThreadId::MathThreadId, word);
    ckernel::mailbox_write(ckernel::ThreadId::PackThreadId, word);
}
#else
inline uint32_t told_by_unpacker() { return ckernel::mailbox_read(ckernel::ThreadId::UnpackThreadId); }
#endif

}  // namespace compute
