// The way of an engine through its stream: segment by segment, pass by pass, instruction by instruction.
#pragma once
#include <cstdint>

#include "arguments.h"
#include "lowered.h"
#include "semaphores.h"

namespace streams {

// Calls `execute(words, pass)` with each instruction of an engine in turn. Streams lie in L1 segment by segment, in each
// that of the mover, the feeder and compute.
template <typename Execute>
inline void run(semaphores::Engine engine, Execute execute) {
    uint32_t stream = arguments::l1(arguments::own(arguments::STREAMS));
    const uint32_t segments = arguments::own(arguments::SEGMENTS);
    for (uint32_t segment = 0; segment < segments; ++segment) {
        const uint32_t at = arguments::SEGMENT + segment * arguments::SEGMENT_WORDS;
        uint32_t first = 0;
        uint32_t all = 0;
        for (uint32_t other = 0; other < 3; ++other) {
            first += other < engine ? arguments::own(at + arguments::COUNTS + other) : 0;
            all += arguments::own(at + arguments::COUNTS + other);
        }
        const uint32_t count = arguments::own(at + arguments::COUNTS + engine);
        const uint32_t begin = stream + first * lowered::INSTRUCTION_BYTES;
        const uint32_t passes = count == 0 ? 0 : arguments::own(at + arguments::PASSES);
        for (uint32_t pass = 0; pass < passes; ++pass) {
            for (uint32_t number = 0; number < count; ++number) {
                const uint32_t address = begin + number * lowered::INSTRUCTION_BYTES;
                execute(reinterpret_cast<lowered::Words>(address), arguments::own(at + arguments::FIRST_PASS) + pass);
            }
        }
        stream += all * lowered::INSTRUCTION_BYTES;
    }
}

// An instruction that this engine cannot execute: nothing after it may be. Its code and the number of the program's
// instruction are left in the engine's word of the start semaphore, for whoever looks why the program does not end.
inline void refuse(const semaphores::Semaphores& semaphores, lowered::Words words) {
    semaphores.words(semaphores::START)[1 + semaphores.engine] = words[lowered::CODE] << 16 | (words[lowered::OP] & 0xffff);
    while (true) {
    }
}

}  // namespace streams
