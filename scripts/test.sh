#!/bin/bash
# Passes all tests: sets up what is missing, then runs the Rust tests, those of the device worker, the kernels on a simulator
# and the tests with ROS 2 peers.
#
#   scripts/test.sh                   everything
#   scripts/test.sh ARGUMENT...       only cargo test, with these arguments: scripts/test.sh --test golden_n16
#   scripts/test.sh ros [NAME...]     only the tests with ROS 2 peers, or those named: scripts/test.sh ros node_test
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$ROOT"

readonly RUST_LABEL="Rust tests"
readonly ROS_LABEL="tests with ROS 2 peers"
readonly DEVICE_LABEL="tests of the device worker"
readonly KERNELS_LABEL="kernels on a simulator"
# They take eight minutes on two idle cores. Where they hang, the signal makes Python tell where every thread stands.
readonly ROS_LIMIT=(timeout --foreground --signal=ABRT --kill-after=10s 30m)
# Lines that are shown of each test with ROS 2 peers that failed.
readonly FAILURE_LINES=40
readonly CLIENTS=$ROS_DIR/clients
readonly CLIENTS_LOCK=$ROOT/tests/clients.lock

# A Python with the packages that the servers' clients need, made once for each version of their list.
make_clients() {
  cmp -s "$CLIENTS_LOCK" "$CLIENTS/made-from" && return
  rm -rf "$CLIENTS" &&
    "$GR00T_BLACKHOLE_PYTHON" -m venv "$CLIENTS" &&
    "$CLIENTS/bin/python" -m pip install --disable-pip-version-check --no-input -r "$CLIENTS_LOCK" &&
    cp "$CLIENTS_LOCK" "$CLIENTS/made-from"
}

ros_tests() {
  local python=("${ROS_LIMIT[@]}" "$GR00T_BLACKHOLE_PYTHON" -X faulthandler)
  cd "$ROOT/tests/ros"
  if [ $# -eq 0 ]; then
    "${python[@]}" -m unittest discover -v -p '*_test.py'
  else
    "${python[@]}" -m unittest -v "$@"
  fi
}

# The names and the tracebacks of the tests that failed, which the end of the log may not hold.
show_ros_failures() { grep -A "$FAILURE_LINES" -E '^(FAIL|ERROR): ' "$1" | sed 's/^/    | /'; }

passed=0
failed=0
skipped=0

# Adds the closing lines of cargo's test programs in the log of a step.
count_rust_tests() {
  local numbers
  while read -r -a numbers; do
    passed=$((passed + numbers[0]))
    failed=$((failed + numbers[1]))
    skipped=$((skipped + numbers[2]))
  done < <(sed -nE 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored;.*/\1 \2 \3/p' "$1")
}

# Adds unittest's closing lines: "Ran 9 tests in 3 s", then "FAILED (failures=1, errors=2, skipped=3)" or "OK".
count_ros_tests() {
  local log=$1 ran not_passed=0 not_run=0 number
  ran=$(sed -nE 's/^Ran ([0-9]+) tests? in .*/\1/p' "$log" | tail -n 1)
  for number in $(grep -E '^FAILED \(' "$log" | tail -n 1 | grep -oE '(failures|errors)=[0-9]+' | grep -oE '[0-9]+'); do
    not_passed=$((not_passed + number))
  done
  for number in $(grep -E '^(OK|FAILED) \(' "$log" | tail -n 1 | grep -oE 'skipped=[0-9]+' | grep -oE '[0-9]+'); do
    not_run=$((not_run + number))
  done
  passed=$((passed + ${ran:-0} - not_passed - not_run))
  failed=$((failed + not_passed))
  skipped=$((skipped + not_run))
}

# Adds pytest's closing lines: "1 failed, 66 passed, 10 skipped in 8.93s", between signs of equality where it names each test.
count_python_tests() {
  local line
  number_of() { grep -oE "[0-9]+ $1" <<<"$line" | grep -oE '[0-9]+' || echo 0; }
  while read -r line; do
    passed=$((passed + $(number_of passed)))
    failed=$((failed + $(number_of failed) + $(number_of error)))
    skipped=$((skipped + $(number_of skipped)))
  done < <(grep -E '^(=+ )?[0-9]+ (failed|passed|skipped|error).* in [0-9.]+s' "$1")
}

# Runs the kernels, wherever there is a simulator or one can be set up.
kernel_tests() {
  local set_up=0
  names_simulator || scripts/setup_simulator.sh || set_up=$?
  case $set_up in
    0) ;;
    "$CANNOT_SET_UP") say "$KERNELS_LABEL: not run, since something has to be installed first (see above)" && return ;;
    *) die "The simulator could not be set up (see above)." ;;
  esac
  step "$KERNELS_LABEL" scripts/test_kernels.sh || status=1
  count_python_tests "$(log_of "$KERNELS_LABEL")"
}

scripts/setup.sh
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
PATH=$PATH:$HOME/.cargo/bin
step "Python clients of the servers" make_clients || die "The Python clients cannot be installed (see above)."
export GR00T_CLIENTS_PYTHON=$CLIENTS/bin/python

if [ "${1:-}" = ros ]; then
  shift
  cargo build --release --bin gr00t_blackhole
  ros_tests "$@"
  exit
elif [ $# -gt 0 ]; then
  exec cargo test --release "$@"
fi

status=0
step "build of the node and the tests" cargo test --release --workspace --no-run || die "The package does not build (see above)."
step "build of the binary" cargo build --release --bin gr00t_blackhole || die "The binary does not build (see above)."
step "$RUST_LABEL" cargo test --release --workspace --no-fail-fast || status=1
count_rust_tests "$(log_of "$RUST_LABEL")"
step "$DEVICE_LABEL" scripts/test_device.sh || status=1
count_python_tests "$(log_of "$DEVICE_LABEL")"
kernel_tests
step "$ROS_LABEL" ros_tests || {
  status=1
  show_ros_failures "$(log_of "$ROS_LABEL")" || echo "It ended without naming a test."
}
count_ros_tests "$(log_of "$ROS_LABEL")"

# A step that failed without a failed test (a crash, say) must not look like a success.
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
