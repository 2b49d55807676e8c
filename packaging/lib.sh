# Shared by the scripts of this folder, on top of scripts/lib.sh.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

# shellcheck disable=SC2034
readonly PACKAGING=$ROOT/packaging
DEB_OUT=$ROOT/out/deb

# Says what was not done, and why.
not_run() { say "not run: $*"; }

# The only package that packaging/build_deb.sh has left.
built_deb() {
  local debs=("$DEB_OUT"/*.deb)
  [ ${#debs[@]} -eq 1 ] && [ -e "${debs[0]}" ] || die "Not exactly one package lies in $DEB_OUT: run packaging/build_deb.sh."
  echo "${debs[0]}"
}

# The ROS 2 packages that the program needs at run time, as package.xml names them, one a line.
run_dependencies() {
  sed -nE 's#^ *<(depend|exec_depend)>(.*)</.*#\2#p' "$ROOT/package.xml"
}

# The Debian name of a ROS 2 package.
debian_name() { echo "ros-$ROS_DISTRO-${1//_/-}"; }
