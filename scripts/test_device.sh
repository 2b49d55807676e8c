#!/bin/bash
# Checks the types of the Python device worker, then runs its tests on a card that is a piece of memory, and holds the kernels'
# format to the program's.
#
#   scripts/test_device.sh                 all of this
#   scripts/test_device.sh ARGUMENT...     the types, and the worker's tests that pytest's arguments name
#
# With TT_METAL_SIMULATOR naming ttsim, and GR00T_DEVICE_PYTHON a Python that has device/requirements.txt and pytest, the worker
# is tested on the simulator, too. scripts/test_kernels.sh runs the kernels there.
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
if names_simulator; then
  python=$GR00T_DEVICE_PYTHON
fi
status=0
"$python" -m pytest -q "$@" || status=1
if [ $# -eq 0 ]; then
  cd "$ROOT/kernels/tests"
  "$python" -m pytest -q test_format.py || status=1
fi
exit "$status"
