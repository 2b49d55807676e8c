// What the mover and the feeder can do, by the codes of instructions.
#pragma once
#include "../streams.h"
#include "load_packet.h"
#include "multicast.h"
#include "read_arena.h"
#include "read_rows.h"
#include "read_tiles.h"
#include "return_credits.h"
#include "send.h"
#include "signal.h"
#include "stream_packet.h"
#include "write_tiles.h"
#include "zero.h"

namespace move {

// Whether this is an instruction of a data-movement core whose buffers are known.
inline bool executed(semaphores::Semaphores& semaphores, Slots& slots, lowered::Words words) {
    using namespace lowered;
    switch (words[CODE]) {
        case Wait::code: semaphores.wait(words[Wait::semaphore], words[Wait::value]); return true;
        case Signal::code: signal(semaphores, words); return true;
        case SignalAll::code: signal_all(semaphores, words); return true;
        case ReadTiles::code: return read_tiles(words);
        case WriteTiles::code: return write_tiles(words);
        case ReadArena::code: read_arena(words); return true;
        case lowered::Send::code: send(words); return true;
        case lowered::Multicast::code: multicast(words); return true;
        case Zero::code: zero(words); return true;
        case ReadRows::code: return read_rows(words);
        case StreamPacket::code: stream_packet(semaphores, slots, words); return true;
        case ReturnCredits::code: return_credits(semaphores, words); return true;
        case LoadPacket::code: load_packet(semaphores, slots, words); return true;
        default: return false;
    }
}

inline void run(semaphores::Semaphores& semaphores) {
    Slots slots = {};
    streams::run(semaphores.engine, [&](lowered::Words words, uint32_t) {
        if (!executed(semaphores, slots, words)) {
            streams::refuse(semaphores, words);
        }
    });
}

}  // namespace move
