#!/bin/bash
# The demo: plays the bundled recording onto ROS 2 topics, lets the node answer it with action chunks, and shows them as
# tables and as a picture. Sets up everything that it needs; no root, no robot, no real weights.
#
#   scripts/demo.sh             eight chunks
#   scripts/demo.sh CHUNKS      as many as you like
#
# The weights are made up, so the motion means nothing; the road from the topics to the chunk is the real one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly BINARY=$ROOT/target/release/gr00t_blackhole
readonly RECORDING=$ROOT/demo/pear_to_plate
readonly PARAMETERS=$ROOT/config/gr1.yaml
readonly OUT=$ROOT/out/demo
readonly SNAPSHOT=$OUT/n16-tiny
readonly PLOT=$OUT/chunks.png
readonly INSTRUCTION="pick the pear and place it on the plate"
# The first chunk has to wait for the checkpoint to load and for discovery; a busy machine takes its time.
readonly WATCH_TIMEOUT_S=120
# A child that has not ended this long after SIGTERM is killed.
readonly GRACE_S=3

case ${1:-} in
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
  '' | *[!0-9]*) [ -z "${1:-}" ] || die "demo.sh: '$1' is not a number of chunks." ;;
esac
readonly CHUNKS=${1:-8}

children=()
end_children() {
  local pid deadline=$((SECONDS + GRACE_S))
  [ ${#children[@]} -gt 0 ] || return 0
  kill -TERM "${children[@]}" 2>/dev/null || true
  for pid in "${children[@]}"; do
    while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null || true
  done
  wait "${children[@]}" 2>/dev/null || true
}
trap end_children EXIT

# start LOG COMMAND...: runs COMMAND in the background with its output in LOG; its process id is in `started`.
start() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null &
  started=$!
  children+=("$started")
}

# Ends the demo, with the end of the log, if the process is gone.
require_alive() {
  local pid=$1 what=$2 log=$3
  ! kill -0 "$pid" 2>/dev/null || return 0
  tail -n 10 "$log" | sed 's/^/    | /' >&2
  die "The $what has ended before the chunks were there; its log: $log"
}

make_checkpoint() {
  rm -rf "$SNAPSHOT" "$SNAPSHOT.part"
  "$BINARY" synth --version n16 --size tiny --out "$SNAPSHOT.part"
  mv "$SNAPSHOT.part" "$SNAPSHOT"
}

[ -d "$RECORDING" ] || die "The recording is missing: $RECORDING should have come with the package."
[ -f "$PARAMETERS" ] || die "The parameters are missing: $PARAMETERS should have come with the package."

"$ROOT/scripts/setup.sh"
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
export PATH=$PATH:$HOME/.cargo/bin
cd "$ROOT"
step "build of the node, cold about five minutes" cargo build --release --locked ||
  die "The node could not be built (see above)."
mkdir -p "$OUT"
step "tiny checkpoint with made-up weights" make_checkpoint || die "The checkpoint could not be made (see above)."

# A domain of our own, and nothing that leaves this machine, unless the user wants it otherwise.
export ROS_DOMAIN_ID=${ROS_DOMAIN_ID:-$((1 + $$ % 100))}
export ROS_AUTOMATIC_DISCOVERY_RANGE=${ROS_AUTOMATIC_DISCOVERY_RANGE:-LOCALHOST}

say "starting node and player in ROS domain $ROS_DOMAIN_ID"
start "$OUT/node.log" "$BINARY" node --ros-args --params-file "$PARAMETERS" \
  -p "snapshot:=$SNAPSHOT" -p "instruction:=$INSTRUCTION"
node=$started
start "$OUT/player.log" "$BINARY" play --recording "$RECORDING" --loop --wait "$WATCH_TIMEOUT_S"
player=$started

say "waiting for $CHUNKS chunks"
"$BINARY" watch --count "$CHUNKS" --timeout "$WATCH_TIMEOUT_S" --plot "$PLOT" &
watcher=$!
children+=("$watcher")
while kill -0 "$watcher" 2>/dev/null; do
  require_alive "$node" node "$OUT/node.log"
  require_alive "$player" player "$OUT/player.log"
  sleep 0.2
done
if ! wait "$watcher"; then
  tail -n 10 "$OUT/node.log" | sed 's/^/    | /' >&2
  die "The chunks did not come; the node's log: $OUT/node.log"
fi
say "done: $CHUNKS chunks above, every action dimension over time in $PLOT"
