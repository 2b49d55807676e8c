// EndStream: gives back what is left of the packet at hand.
// Raises: the ring's semaphore for free slots, if there is a packet at hand.
#pragma once
#include "packets.h"

namespace compute {

inline void end_stream(semaphores::Semaphores& semaphores, Packets& packets) { packets.release(semaphores); }

}  // namespace compute
