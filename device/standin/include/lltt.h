// Recording and replaying of instructions, by the interface of the header of this name in SFPI.
#pragma once
#include <cstdint>

extern volatile std::uint32_t __instrn_buffer[];

namespace lltt {
enum ExecBool : bool { NoExec, Exec };

// The instruction REPLAY.
[[gnu::always_inline]] constexpr inline std::uint32_t replay_insn(unsigned start, unsigned length) {
    return (0x04u << 24) | (start << 14) | (length << 4);
}

// Words that are known when this is compiled stand in the stream; others go through the buffer of instructions.
[[gnu::always_inline]] inline void issue(std::uint32_t word) {
    if (__builtin_constant_p(word)) {
        __asm__ volatile(".ttinsn %0" ::"i"(word));
    } else {
        __instrn_buffer[0] = word;
    }
}

template <ExecBool EXEC = NoExec>
[[gnu::always_inline]] inline void record(unsigned start, unsigned length) {
    issue(replay_insn(start, length) | (unsigned(EXEC) << 1) | 1u);
}

[[gnu::always_inline]] inline void replay(unsigned start, unsigned length) { issue(replay_insn(start, length)); }
}  // namespace lltt
