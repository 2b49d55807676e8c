#!/bin/bash
# Hours of a robot's life in minutes, with random faults, against the built node; reports what came of it.
#
#   scripts/soak.sh                     30 minutes of the robot's time, which take 3
#   scripts/soak.sh --minutes 20 --seed 7
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"
scripts/setup.sh
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
PATH=$PATH:$HOME/.cargo/bin
cargo build --release --bin gr00t_blackhole
exec "$GR00T_BLACKHOLE_PYTHON" tests/ros/soak.py "$@"
