// What compute can do, by the codes of instructions. Every thread sees every instruction.
#pragma once
#include "../streams.h"
#include "accumulate.h"
#include "copy_block.h"
#include "end_stream.h"
#include "execute_vector.h"
#include "matmul.h"
#include "move_rows.h"
#include "regroup.h"
#include "spread.h"

namespace compute {

struct State {
    semaphores::Semaphores semaphores;
    Packets packets;
};

// False where it is a semaphore of another core: compute has no way to the network.
inline bool signal(const semaphores::Semaphores& semaphores, lowered::Words words) {
    const uint32_t own = get_absolute_logical_x() | get_absolute_logical_y() << 8;
    if (words[lowered::Signal::core] != own) {
        return false;
    }
    UNPACK((semaphores.raise(words[lowered::Signal::semaphore], words[lowered::Signal::value])));
    return true;
}

inline void wait(semaphores::Semaphores& semaphores, lowered::Words words) {
    UNPACK((semaphores.wait(words[lowered::Wait::semaphore], words[lowered::Wait::value])));
    UNPACK((memory::refresh()));
}

// Whether this is an instruction that compute knows.
inline bool executed(State& state, lowered::Words words, uint32_t pass) {
    using namespace lowered;
    switch (words[CODE]) {
        case Wait::code: wait(state.semaphores, words); return true;
        case Signal::code: return signal(state.semaphores, words);
        case Matmul::code: return matmul(state.semaphores, state.packets, words, pass);
        case EndStream::code: end_stream(state.semaphores, state.packets); return true;
        case Accumulate::code: accumulate(words); return true;
        case CopyBlock::code: copy_block(words); return true;
        case MoveRows::code: return move_rows(words);
        case Spread::code: spread(words); return true;
        case Regroup::code: regroup(words); return true;
        default: return vector_executed(words, pass);
    }
}

inline void run(State& state) {
    streams::run(semaphores::COMPUTE, [&](lowered::Words words, uint32_t pass) {
        if (!executed(state, words, pass)) {
            streams::refuse(state.semaphores, words);
        }
    });
}

}  // namespace compute
