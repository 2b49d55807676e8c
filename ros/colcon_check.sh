#!/bin/bash
# Builds the package with colcon, as a robot's workspace does, and checks that what ros2 run and ros2 launch look up is
# where they look. Needs scripts/setup.sh first.
#
# cargo works in the checkout's own target folder, against the interfaces of .ros: nothing is compiled a second time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"

readonly COLCON=$ROS_DIR/colcon
readonly WORKSPACE=$ROS_DIR/workspace
readonly LOCK=$ROOT/ros/requirements-colcon.lock

install_colcon() {
  rm -rf "$COLCON" &&
    "$GR00T_BLACKHOLE_PYTHON" -m venv "$COLCON" &&
    "$COLCON/bin/python" -m pip install --disable-pip-version-check --no-input -r "$LOCK"
}

build() {
  cd "$WORKSPACE" &&
    CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$ROOT/target}" "$COLCON/bin/colcon" build \
      --base-paths "$ROOT" --packages-select gr00t_blackhole --event-handlers console_direct+ \
      --cmake-args -DPython3_EXECUTABLE="$GR00T_BLACKHOLE_PYTHON" -DBUILD_TESTING=OFF
}

mark=$COLCON/.complete-$(sha256sum <"$LOCK" | cut -c1-16)
if [ ! -e "$mark" ]; then
  step "colcon" install_colcon || die "colcon could not be installed (see above)."
  touch "$mark"
fi
rm -rf "$WORKSPACE"
mkdir -p "$WORKSPACE"
step "colcon build" build || die "The package does not build with colcon (see above)."

prefix=$WORKSPACE/install/gr00t_blackhole
for file in lib/gr00t_blackhole/gr00t_blackhole share/gr00t_blackhole/package.xml \
  share/gr00t_blackhole/launch/policy.launch.py share/gr00t_blackhole/config/default.yaml \
  share/gr00t_blackhole/config/fastdds_large_images.xml share/gr00t_blackhole/msg/ActionChunk.msg \
  share/ament_index/resource_index/packages/gr00t_blackhole; do
  [ -e "$prefix/$file" ] || die "colcon did not install $file."
done
# The installed program starts in the workspace's own environment, where its interfaces come from the install folder.
(
  # shellcheck disable=SC1091
  set +u && source "$WORKSPACE/install/setup.bash" && set -u
  "$prefix/lib/gr00t_blackhole/gr00t_blackhole" --help >/dev/null
  "$GR00T_BLACKHOLE_PYTHON" -c 'from gr00t_blackhole.msg import ActionChunk; ActionChunk()' 2>/dev/null
) || die "What colcon installed does not run."
say "the package builds with colcon and runs from its install folder"
