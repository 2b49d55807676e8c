// LoadPacket: a packet of the arena to the next slot of this core's own ring.
// Waits: the ring's semaphore for free slots. Reads: DRAM. Writes: a slot. Raises: the semaphore for packets.
#pragma once
#include "packets.h"

namespace move {

inline void load_packet(semaphores::Semaphores& semaphores, Slots& slots, lowered::Words words) {
    using lowered::LoadPacket;
    semaphores.wait(arguments::own(arguments::RING_FREED), 1);
    noc_async_read(arena(words[LoadPacket::bank], words[LoadPacket::offset]), slots.next(0), words[LoadPacket::bytes]);
    noc_async_read_barrier();
    semaphores.raise(arguments::own(arguments::RING_PACKETS), 1);
}

}  // namespace move
