#!/bin/bash
# Builds the package with colcon for the ROS 2 that is sourced, and packs it: image/build.sh SOURCE WORKSPACE.
set -euo pipefail
source=$(cd "$1" && pwd)
workspace=$2
mkdir -p "$workspace"
cd "$workspace"
colcon build --base-paths "$source" --packages-select gr00t_blackhole --event-handlers console_direct+ \
  --cmake-args -DBUILD_TESTING=OFF
"$source/packaging/build_deb.sh" "$workspace/build/gr00t_blackhole"
