// The consumer's side of a ring of packets: where the next tile of the weights lies.
//
// All three threads follow the tiles through the packets, so that they agree where one ends; only the unpack thread waits
// for packets and gives them back.
#pragma once
#include "engine.h"

namespace compute {

struct Packets {
    // The slot of the packet at hand, or of the next one.
    uint32_t slot;
    // Where the next tile of the packet at hand begins.
    uint32_t next;
    bool at_hand;

    void release([[maybe_unused]] semaphores::Semaphores& semaphores) {
        if (!at_hand) {
            return;
        }
        at_hand = false;
        slot = slot + 1 == arguments::own(arguments::RING_SLOTS) ? 0 : slot + 1;
#ifdef TRISC_UNPACK
        await_unpacker();
        semaphores.raise(arguments::own(arguments::RING_FREED), 1);
#endif
    }

    // Makes sure that the packet at hand has a tile of so many bytes: gives it back and takes the next one where it has not.
    void take(semaphores::Semaphores& semaphores, uint32_t bytes) {
        if (at_hand && next + bytes <= lowered::PACKET_BYTES) {
            return;
        }
        release(semaphores);
#ifdef TRISC_UNPACK
        semaphores.wait(arguments::own(arguments::RING_PACKETS), 1);
        memory::refresh();
#endif
        at_hand = true;
        next = 0;
    }

    // Tiles of so many bytes that the packet at hand has room for, from the next one on.
    uint32_t room(uint32_t bytes) const { return (lowered::PACKET_BYTES - next) / bytes; }

    // Address of the next tile, which then is the one behind it.
    uint32_t advance(uint32_t bytes) {
        const uint32_t offset = slot * lowered::PACKET_BYTES + next;
        next += bytes;
        return arguments::l1(arguments::own(arguments::RING) + offset);
    }
};

}  // namespace compute
