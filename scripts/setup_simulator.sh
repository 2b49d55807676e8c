#!/bin/bash
# Sets up what running kernels without a card needs, from the registries of Debian and PyPI alone: a compiler for simulators,
# tt-metal in a virtual environment, and wolfpine, a simulator in pure Python.
#
#   scripts/setup_simulator.sh
#
# Afterwards:  source .ros/simulator/env.sh && "$GR00T_DEVICE_PYTHON" -m pytest kernels/tests
# A simulator that TT_METAL_SIMULATOR names before env.sh is sourced is kept: ttsim runs with the same Python and compiler.
# As root, missing Debian packages are installed; otherwise they are named, and the exit status is 2, as without a Python 3.12.
# Running it again costs next to nothing, needs no network, and repairs what an aborted run has left.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly WORKER=$SIMULATOR_DIR/worker
readonly WOLFPINE=$SIMULATOR_DIR/wolfpine
readonly SITE_PACKAGES=lib/python3.12/site-packages
readonly DEVICE=$ROOT/device
# clang compiles, binutils link, libgcc has the arithmetic that the processors lack, and newlib the headers of C and C++.
readonly PACKAGES=(clang-19 gcc-riscv64-unknown-elf libnewlib-dev libstdc++-arm-none-eabi-dev)

case ${1:-} in
  '') ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" && exit ;;
  *) die "setup_simulator.sh: unknown argument '$1' (it takes none)" ;;
esac

# Ends the script with what the user has to install.
cannot() {
  printf '%s\n' "$*" >&2
  exit "$CANNOT_SET_UP"
}

# --- The compiler's packages ---

is_installed() { [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update && apt-get install --yes --no-install-recommends "$@"
}

# Installs the packages that are missing, or says which they are.
compiler_packages() {
  local package missing=()
  for package in "${PACKAGES[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    cannot "Only root can install the compiler for simulators: apt-get install --no-install-recommends ${missing[*]}"
  fi
  step "compiler for simulators" install_packages "${missing[@]}" ||
    die "The packages of the compiler could not be installed (see above)."
}

# --- The virtual environments ---

# make_venv FOLDER REQUIREMENTS: the requirements name every package, so that no other is brought.
make_venv() {
  rm -rf "$1" &&
    "$python" -m venv "$1" &&
    "$1/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --no-deps --no-compile -r "$2"
}

make_worker() {
  make_venv "$WORKER" "$DEVICE/requirements-simulator.txt" && "$DEVICE/standin/install.sh" "$WORKER/$SITE_PACKAGES/ttnn"
}

make_wolfpine() { make_venv "$WOLFPINE" "$DEVICE/requirements-wolfpine.txt"; }

# A hash of what these files, and those in these folders, hold.
hash_of() { find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | sha256sum | cut -c1-16; }

# prepare LABEL FOLDER COMMAND SOURCE...: makes a virtual environment, unless it is complete and was made from just these
# sources. One without that mark is made anew: an aborted install leaves packages behind that look whole.
prepare() {
  local label=$1 folder=$2 command=$3 mark
  shift 3
  mark=$folder/.complete-$(hash_of "$@")
  if [ -e "$mark" ] && "$folder/bin/python" -c '' 2>/dev/null; then
    return
  fi
  python=$(find_python312) ||
    cannot "Python 3.12 is missing, for which the wheels of tt-metal are made: install it, or name it with PYTHON312=/path/to/python3.12."
  step "$label" "$command" || die "$label could not be set up (see above)."
  touch "$mark"
}

# --- The environment ---

# shellcheck disable=SC2016 # What stands in single quotes is expanded by whoever sources it.
write_env() {
  {
    echo "# Written by scripts/setup_simulator.sh; source it to run kernels without a card."
    printf 'export GR00T_DEVICE_PYTHON=${GR00T_DEVICE_PYTHON:-%q}\n' "$WORKER/bin/python"
    printf 'export TT_METAL_CACHE=${TT_METAL_CACHE:-%q}\n' "$SIMULATOR_DIR/cache"
    echo "# Simulators have no cores that could send telemetry."
    echo "export TT_METAL_DISPATCH_TELEMETRY_DISABLE=1"
    echo 'if [ -z "${TT_METAL_SIMULATOR:-}" ]; then'
    printf '  export TT_METAL_SIMULATOR=%q\n' "$WOLFPINE/$SITE_PACKAGES/framework/sim/blackhole"
    printf '  export WOLFPINE_PYTHON=%q\n' "$WOLFPINE/bin/python"
    echo "  # The only way in which wolfpine starts programs."
    echo "  export TT_METAL_SLOW_DISPATCH_MODE=1"
    echo "fi"
  } >"$SIMULATOR_DIR/env.sh.new"
  mv "$SIMULATOR_DIR/env.sh.new" "$SIMULATOR_DIR/env.sh"
}

mkdir -p "$SIMULATOR_DIR"
compiler_packages
prepare "tt-metal and its compiler" "$WORKER" make_worker "$DEVICE"/requirements{,-simulator}.txt "$DEVICE/standin"
prepare "wolfpine" "$WOLFPINE" make_wolfpine "$DEVICE/requirements-wolfpine.txt"
write_env
say "set up; next: source ${SIMULATOR_DIR#"$ROOT/"}/env.sh && \"\$GR00T_DEVICE_PYTHON\" -m pytest kernels/tests"
