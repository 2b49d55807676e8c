// What LLK's headers take from SFPI as soon as they are included: modes of the instruction SFPLOADI, as the public ISA
// documentation has them. SFPI's vector types need Tenstorrent's own compiler.
#pragma once

namespace sfpi {
constexpr unsigned SFPLOADI_MOD0_FLOATB = 0;  // bf16 becomes f32
constexpr unsigned SFPLOADI_MOD0_FLOATA = 1;  // fp16 becomes f32
constexpr unsigned SFPLOADI_MOD0_USHORT = 2;
constexpr unsigned SFPLOADI_MOD0_SHORT = 4;
constexpr unsigned SFPLOADI_MOD0_UPPER = 8;
constexpr unsigned SFPLOADI_MOD0_LOWER = 10;
}  // namespace sfpi
