// The micro-operations whose work is done by the vector unit, by the codes of instructions.
#pragma once
#include "activate.h"
#include "attention.h"
#include "combine.h"
#include "layer_norm.h"
#include "moments.h"
#include "normalise.h"
#include "rms_norm.h"
#include "rope.h"

namespace compute {

// Whether this is one of them that can be executed.
inline bool vector_executed(lowered::Words words, uint32_t pass) {
    using namespace lowered;
    switch (words[CODE]) {
        case Moments::code: moments(words); return true;
        case Combine::code: combine(words); return true;
        case Normalise::code: return normalise(words, pass);
        case Attention::code: return attention(words);
        case LayerNorm::code: return layer_norm(words);
        case RmsNorm::code: return rms_norm(words);
        case Rope::code: return rope(words);
        case Activate::code: activate_block(words); return true;
        default: return false;
    }
}

}  // namespace compute
