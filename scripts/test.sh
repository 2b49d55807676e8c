#!/bin/bash
# Passes all tests: sets up what is missing, then runs the Rust tests and the tests with ROS 2 peers.
#
#   scripts/test.sh [ARGUMENT...]     arguments go to `cargo test`, for example: scripts/test.sh --test golden_n16
#
# With arguments, only `cargo test` runs.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

scripts/setup.sh
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
say "Rust tests"
cargo test --release "$@"
[ $# -eq 0 ] || exit 0
cargo build --release --bin gr00t_blackhole
say "launch file"
"$GR00T_BLACKHOLE_PYTHON" tests/ros/launch_test.py
say "node with ROS 2 peers"
"$GR00T_BLACKHOLE_PYTHON" tests/ros/node_test.py
say "all tests passed"
