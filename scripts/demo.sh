#!/bin/bash
# The demo: plays a bundled recording onto ROS 2 topics, lets the node answer it with action chunks, and shows them as
# tables and as a picture. Sets up everything that it needs; no root, no robot, no real weights.
#
#   scripts/demo.sh                        eight chunks of N1.6 for a humanoid with one camera
#   scripts/demo.sh CHUNKS                 as many as you like
#   scripts/demo.sh --version n17 [CHUNKS] N1.7 for an arm with two cameras, its pose in TF and a gripper
#   scripts/demo.sh --version n15 [CHUNKS] N1.5 for the humanoid
#   scripts/demo.sh --version all [CHUNKS] one after the other
#
# The weights are made up, so the motion means nothing; the road from the topics to the chunk is the real one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly BINARY=$ROOT/target/release/gr00t_blackhole
readonly OUT=$ROOT/out/demo
readonly INSTRUCTION="pick the pear and place it on the plate"
# The first chunk has to wait for the checkpoint to load and for discovery; a busy machine takes its time.
readonly WATCH_TIMEOUT_S=120
# A child that has not ended this long after SIGTERM is killed.
readonly GRACE_S=3

help() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

versions=n16
chunks=8
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) help; exit 0 ;;
    --version)
      case ${2:-} in
        n15 | n16 | n17) versions=$2 ;;
        all) versions="n15 n16 n17" ;;
        *) die "demo.sh: --version takes n15, n16, n17 or all, not '${2:-}'." ;;
      esac
      shift 2
      ;;
    '' | 0* | *[!0-9]*) die "demo.sh: '$1' is not a number of chunks." ;;
    *) chunks=$1; shift ;;
  esac
done
readonly versions chunks

# robot VERSION: the recording and the parameters of the robot that shows this version.
robot() {
  case $1 in
    n15) recording=pear_to_plate parameters=gr1_n15.yaml ;;
    n16) recording=pear_to_plate parameters=gr1.yaml ;;
    n17) recording=droid_pear_to_plate parameters=droid.yaml ;;
  esac
  recording=$ROOT/demo/$recording
  parameters=$ROOT/config/$parameters
  [ -d "$recording" ] || die "The recording is missing: $recording should have come with the package."
  [ -f "$parameters" ] || die "The parameters are missing: $parameters should have come with the package."
}

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
  children=()
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

# make_checkpoint VERSION DIRECTORY
make_checkpoint() {
  rm -rf "$2" "$2.part"
  "$BINARY" synth --version "$1" --size tiny --out "$2.part"
  mv "$2.part" "$2"
}

# show VERSION: node, player and watcher, until the chunks are there.
show() {
  local version=$1 snapshot=$OUT/$1-tiny plot=$OUT/chunks-$1.png log=$OUT/$1
  local recording parameters node player watcher
  robot "$version"
  [ "$version" != "$versions" ] || plot=$OUT/chunks.png
  step "tiny $version checkpoint with made-up weights" make_checkpoint "$version" "$snapshot" ||
    die "The checkpoint could not be made (see above)."

  say "starting node and player for $version in ROS domain $ROS_DOMAIN_ID"
  start "$log-node.log" "$BINARY" node --version "$version" --ros-args --params-file "$parameters" \
    -p "snapshot:=$snapshot" -p "instruction:=$INSTRUCTION"
  node=$started
  start "$log-player.log" "$BINARY" play --recording "$recording" --loop --wait "$WATCH_TIMEOUT_S"
  player=$started

  say "waiting for $chunks chunks"
  "$BINARY" watch --count "$chunks" --timeout "$WATCH_TIMEOUT_S" --plot "$plot" &
  watcher=$!
  children+=("$watcher")
  while kill -0 "$watcher" 2>/dev/null; do
    require_alive "$node" node "$log-node.log"
    require_alive "$player" player "$log-player.log"
    sleep 0.2
  done
  if ! wait "$watcher"; then
    tail -n 10 "$log-node.log" | sed 's/^/    | /' >&2
    die "The chunks did not come; the node's log: $log-node.log"
  fi
  end_children
  "$BINARY" replay "$recording" --params "$parameters" --snapshot "$snapshot" --instruction "$INSTRUCTION" \
    --out "$OUT/replay-$version" >"$log-replay.log" ||
    die "The recording could not be replayed; the log: $log-replay.log"
  say "the same recording without ROS: $OUT/replay-$version/report.html"
  say "done: $chunks chunks of $version above, every action dimension over time in $plot"
}

"$ROOT/scripts/setup.sh"
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"
export PATH=$PATH:$HOME/.cargo/bin
cd "$ROOT"
step "build of the node, cold five to fifteen minutes, the last crate the longest" cargo build --release --locked ||
  die "The node could not be built (see above)."
mkdir -p "$OUT"

# A domain of our own, and nothing that leaves this machine, unless the user wants it otherwise.
export ROS_DOMAIN_ID=${ROS_DOMAIN_ID:-$((1 + $$ % 100))}
export ROS_AUTOMATIC_DISCOVERY_RANGE=${ROS_AUTOMATIC_DISCOVERY_RANGE:-LOCALHOST}

for version in $versions; do
  show "$version"
done
