# Shared by the scripts of this folder: where things are, and progress with elapsed seconds.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ROS_DIR=$ROOT/.ros
LOG_DIR=$ROS_DIR/log
SIMULATOR_DIR=$ROS_DIR/simulator
# shellcheck disable=SC2034 # Not every script needs all of them.
readonly ROOT ROS_DIR LOG_DIR SIMULATOR_DIR

# Exit status of a set-up for which something has to be installed first, by somebody else.
# shellcheck disable=SC2034
readonly CANNOT_SET_UP=2

# Whether the user has chosen a simulator, and a Python for it.
names_simulator() { [ -n "${TT_METAL_SIMULATOR:-}" ] && [ -n "${GR00T_DEVICE_PYTHON:-}" ]; }

# Lines of a failed step's log that are shown.
readonly LOG_TAIL=25
# Without a terminal, a step that runs on says so once in this many seconds.
readonly HEARTBEAT_S=30

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# Ends the script with one sentence.
die() {
  printf '\n%s\n' "$*" >&2
  exit 1
}

# A python3.12 on PATH may be a version manager's stand-in that fails when run, so each candidate is tried.
find_python312() {
  local candidate
  for candidate in "${PYTHON312:-}" python3.12 "$HOME"/.pyenv/versions/3.12*/bin/python3.12 \
    "$HOME"/.local/share/uv/python/cpython-3.12*/bin/python3.12 /usr/bin/python3.12 /usr/local/bin/python3.12; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# The log of the step LABEL.
log_of() { echo "$LOG_DIR/$(tr -cs '[:alnum:]' '-' <<<"$1" | sed 's/^-*//; s/-*$//').log"; }

# The last line of a log, short enough to stand behind a label.
last_line() { tail -n 1 "$1" | tr -d '\r' | cut -c1-60; }

# step LABEL COMMAND...: runs COMMAND with its output in a log, shows how long it takes and the last line of the log, and
# on failure the end of the log. Leaves the command's exit status.
step() {
  local label=$1 start=$SECONDS log status=0 next_beat=$HEARTBEAT_S
  shift
  mkdir -p "$LOG_DIR"
  log=$(log_of "$label")
  # Job control gives the step a process group, so that an interrupt can end everything that it has started.
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  local pid=$!
  set +m
  trap 'kill -- "-$pid" 2>/dev/null; wait "$pid"; exit 130' INT TERM
  [ -t 1 ] || say "$label ..."
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.5
    local elapsed=$((SECONDS - start))
    if [ -t 1 ]; then
      printf '\r\033[K[%4d s] %s ... %d s: %s' "$SECONDS" "$label" "$elapsed" "$(last_line "$log")"
    elif [ "$elapsed" -ge "$next_beat" ]; then
      say "$label ... $elapsed s: $(last_line "$log")"
      next_beat=$((elapsed + HEARTBEAT_S))
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ ! -t 1 ] || printf '\r\033[K'
  if [ "$status" -ne 0 ]; then
    say "$label: failed after $((SECONDS - start)) s. The end of its log:"
    tail -n "$LOG_TAIL" "$log" | sed 's/^/    | /'
    printf 'The whole log: %s\n' "$log"
    return "$status"
  fi
  say "$label: done in $((SECONDS - start)) s"
}
