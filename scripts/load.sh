#!/bin/bash
# The built node under the load of a robot with two large cameras; reports chunks, ages and what the node adds.
#
#   scripts/load.sh                 60 seconds
#   scripts/load.sh --seconds 10
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
scripts/setup.sh
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
PATH=$PATH:$HOME/.cargo/bin
cargo build --release --bin gr00t_blackhole
exec "$GR00T_BLACKHOLE_PYTHON" tests/ros/load.py "$@"
