#!/bin/bash
# Exit status 0 if what runs in this container does its work, see healthcheck.py for the arguments.
set -e
if [ -e "/opt/ros/$ROS_DISTRO/setup.bash" ]; then
  # shellcheck disable=SC1090
  source "/opt/ros/$ROS_DISTRO/setup.bash"
fi
exec python3 "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/healthcheck.py" "$@"
