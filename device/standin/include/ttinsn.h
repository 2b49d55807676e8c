// Comes before every source: the directive with which Tenstorrent's assembler writes a Tensix instruction. Such words lie
// in the RISC-V stream rotated left by two.
#pragma once
__asm__(
    ".ifndef ttinsn_is_defined\n"
    ".set ttinsn_is_defined, 1\n"
    ".macro .ttinsn word:req\n"
    ".4byte ((((\\word) & 0x3fffffff) << 2) | (((\\word) >> 30) & 3))\n"
    ".endm\n"
    ".endif\n");
