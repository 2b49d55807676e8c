#!/bin/bash
# Runs the tests of the kernels on a simulator: the one that TT_METAL_SIMULATOR names, otherwise wolfpine, which is set up.
#
#   scripts/test_kernels.sh                all tests on ttsim; on wolfpine a choice of them (at most 3.5 minutes of processor time)
#   scripts/test_kernels.sh ARGUMENT...    those that pytest's arguments name: . for all that the simulator can run
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if ! names_simulator; then
  "$ROOT/scripts/setup_simulator.sh"
  # shellcheck disable=SC1091
  source "$SIMULATOR_DIR/env.sh"
fi

cd "$ROOT/kernels/tests"
tests=("$@")
processes=$(nproc)
if [ -d "$TT_METAL_SIMULATOR" ]; then
  # Moving data, products in bf16, the functions of the vector unit, and a case of every other instruction.
  [ $# -gt 0 ] || tests=(@short.txt)
  # tt-metal waits five seconds for wolfpine's end.
  processes=$((2 * processes))
fi
options=(-v)
if "$GR00T_DEVICE_PYTHON" -c 'import xdist' 2>/dev/null; then
  options+=(-n "$processes" --maxschedchunk 1)
  # What every program needs is built by one test; otherwise all that start together would build it.
  if [ ! -e "${TT_METAL_CACHE:-}" ]; then
    say "building firmware and kernels"
    "$GR00T_DEVICE_PYTHON" -m pytest test_transfers.py::test_tiles_go_to_l1_and_back >/dev/null || true
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$GR00T_DEVICE_PYTHON" -m pytest "${options[@]}" "${tests[@]}" | tee "$log"
# A simulator that no test has used is no success.
tail -n 1 "$log" | grep -qE '\b[1-9][0-9]* passed' || die "No test has passed: the kernels have not run."
