#!/bin/bash
# Checks the types of the Python device worker, then runs its tests on a card that is a piece of memory, and holds the kernels'
# format to the program's.
#
#   scripts/test_device.sh [ARGUMENT...]   arguments are those of pytest
#
# With TT_METAL_SIMULATOR set and GR00T_DEVICE_PYTHON naming a Python that has device/requirements.txt and pytest, worker and
# kernels are tested on the simulator too.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT/device"

readonly VENV=$ROS_DIR/device-venv
readonly TOOLS=requirements-tools.txt

if ! cmp -s "$TOOLS" "$VENV/$TOOLS"; then
  python3 -m venv "$VENV"
  "$VENV/bin/pip" install --quiet --requirement "$TOOLS"
  cp "$TOOLS" "$VENV/$TOOLS"
fi
"$VENV/bin/mypy"
python=$VENV/bin/python
if [ -n "${TT_METAL_SIMULATOR:-}" ] && [ -n "${GR00T_DEVICE_PYTHON:-}" ]; then
  python=$GR00T_DEVICE_PYTHON
fi
status=0
"$python" -m pytest -q "$@" || status=1
cd "$ROOT/kernels/tests"
"$python" -m pytest -q "$@" || status=1
exit "$status"
