// Where the semaphores of this core lie: the runtime tells data-movement cores only, so compute looks it up in the message
// that its program was launched with.
#pragma once
#include <cstdint>

#include "hostdev/dev_msgs.h"
#include "internal/firmware_common.h"

namespace compute {

inline uint32_t semaphores_base() {
    auto* messages = reinterpret_cast<tt_l1_ptr mailboxes_t*>(MEM_MAILBOX_BASE);
    const auto& config = messages->launch[messages->launch_msg_rd_ptr].kernel_config;
    return config.kernel_config_base[ProgrammableCoreType::TENSIX] + config.sem_offset[ProgrammableCoreType::TENSIX];
}

}  // namespace compute
