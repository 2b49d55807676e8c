#!/bin/bash
# Puts the stand-in compiler where the ttnn wheel looks for Tenstorrent's own, and builds with it the objects that the wheel
# has as bytecode of GCC 15 only.
#
#   device/standin/install.sh SITE_PACKAGES/ttnn
set -euo pipefail

wheel=${1:?usage: device/standin/install.sh SITE_PACKAGES/ttnn}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sfpi=$wheel/runtime/sfpi
hardware=$wheel/tt_metal/hw

if [ -e "$sfpi" ] && [ ! -e "$sfpi/version" ]; then
  echo "$sfpi is not of this script's making: it may be Tenstorrent's compiler, and is left alone" >&2
  exit 1
fi
rm -rf "$sfpi"
mkdir -p "$sfpi/compiler/bin" "$sfpi/lib"
cp "$here/riscv-tt-elf-g++" "$sfpi/compiler/bin/"
cp -R "$here/include" "$sfpi/"
cp "$here/symbols.ld" "$sfpi/lib/"
# By this tt-metal tells what one version of the stand-in has built from what another has.
find "$here" -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-12 >"$sfpi/version"

includes=(-I"$wheel" -I"$wheel/tt_metal/hostdevcommon/api" -I"$wheel/tt_metal/api")
for folder in . internal/tt-1xx internal/tt-1xx/blackhole internal/tt-1xx/blackhole/blackhole_defines internal/tt-1xx/blackhole/noc; do
  includes+=(-I"$hardware/inc/$folder")
done
includes+=(-I"$wheel/tt_metal/tt-llk/tt_llk_blackhole/common/inc" -I"$wheel/tt_metal/tt-llk/common")
defines=(-DARCH_BLACKHOLE -DTENSIX_FIRMWARE -DLOCAL_MEM_EN=0)

# build SOURCE [OPTION...]: the object of that name.
build() {
  local source=$1 name
  shift
  name=$(basename "${source%.*}")
  # No simulator is needed for it, but the compiler asks for the name of one.
  TT_METAL_SIMULATOR=${TT_METAL_SIMULATOR:-none} "$sfpi/compiler/bin/riscv-tt-elf-g++" -Os "$@" -c -o "$sfpi/lib/$name.o" "$source"
}
build "$here/runtime.cpp" -fno-builtin
clang++-19 --target=riscv32-unknown-elf -march=rv32im -mabi=ilp32 -c -o "$sfpi/lib/tmu-crt0.o" "$hardware/toolchain/tmu-crt0.S"
build "$hardware/toolchain/substitutes.cpp" "${includes[@]}" "${defines[@]}"
build "$hardware/firmware/src/tt-1xx/blackhole/noc.c" -x c++ "${includes[@]}" "${defines[@]}"
build "$hardware/firmware/src/tt-1xx/tdma_xmov.c" -x c++ "${includes[@]}" "${defines[@]}"
