// Packets of the arena on their way to a ring.
//
// A ring is `RING_SLOTS` slots of PACKET_BYTES, filled one after the other. Who fills a ring counts for itself which slot
// is next; there is one filler for each ring. On a reader the arguments of the ring are those of its consumers, whose rings
// lie at the same place; its scratch has the two slots through which packets pass.
#pragma once
#include "../semaphores.h"
#include "read_arena.h"
#include "signal.h"

namespace move {

struct Slots {
    // Packets so far, of each consumer; a reader knows its consumers by their credits.
    uint32_t packets[semaphores::COUNT];

    // Where the next packet of a consumer goes.
    uint32_t next(uint32_t consumer) {
        const uint32_t slot = packets[consumer];
        packets[consumer] = slot + 1 == arguments::own(arguments::RING_SLOTS) ? 0 : slot + 1;
        return arguments::l1(arguments::own(arguments::RING) + slot * lowered::PACKET_BYTES);
    }
};

}  // namespace move
