// StreamPacket: a packet from this reader's bank to the next slot of a consumer's ring.
// Waits: semaphore `credit`. Reads: DRAM. Writes: a slot of the ring, by way of this core's scratch. Raises: the consumer's
// semaphore for packets, when the packet is there.
#pragma once
#include "packets.h"

namespace move {

inline void stream_packet(semaphores::Semaphores& semaphores, Slots& slots, lowered::Words words) {
    using lowered::StreamPacket;
    const uint32_t credit = words[StreamPacket::credit];
    const uint32_t consumer = words[StreamPacket::consumer];
    const uint32_t bytes = words[StreamPacket::bytes];
    semaphores.wait(credit, 1);
    const uint32_t staging = arguments::l1(arguments::own(arguments::SCRATCH));
    noc_async_read(arena(arguments::own(arguments::BANK), words[StreamPacket::offset]), staging, bytes);
    noc_async_read_barrier();
    noc_async_write(staging, network::of_core(consumer, slots.next(credit)), bytes);
    noc_async_write_barrier();
    add(semaphores, consumer, arguments::own(arguments::RING_PACKETS), 1);
}

}  // namespace move
