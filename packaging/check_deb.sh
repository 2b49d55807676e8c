#!/bin/bash
# Builds the Debian package from what colcon has built and looks at what is in it: fields, files, units, and whether the
# program runs from where it would be installed. Needs ros/colcon_check.sh first, or BUILD, colcon's build folder.
#
#   packaging/check_deb.sh [BUILD]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"

# Larger than anything that belongs into the package, smaller than any weights [bytes].
readonly FILE_LIMIT=$((256 << 20))
readonly SERVICES="gr00t-blackhole.service gr00t-blackhole-http.service"

"$PACKAGING/build_deb.sh" "${1:-$ROS_DIR/workspace/build/gr00t_blackhole}"
deb=$(built_deb)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
dpkg-deb -x "$deb" "$tree"
prefix=$tree/opt/ros/$ROS_DISTRO

# --- Fields ---

dependencies=" $(dpkg-deb -f "$deb" Depends | sed 's/ ([^)]*)//g; s/,//g') "
while read -r package; do
  [[ $dependencies == *" $(debian_name "$package") "* ]] || die "The package does not depend on $(debian_name "$package"), as package.xml does."
done < <(run_dependencies)
[ "$(dpkg-deb -f "$deb" Version)" = "$(sed -nE 's/^version = "(.*)"$/\1/p' "$ROOT/Cargo.toml" | head -n 1)" ] ||
  die "The package has the version $(dpkg-deb -f "$deb" Version), Cargo.toml has another one."

# --- Files ---

for file in "$prefix/lib/gr00t_blackhole/gr00t_blackhole" "$prefix/share/gr00t_blackhole/package.xml" \
  "$prefix/share/gr00t_blackhole/launch/policy.launch.py" "$prefix/share/gr00t_blackhole/config/default.yaml" \
  "$prefix/share/ament_index/resource_index/packages/gr00t_blackhole" "$tree/usr/bin/gr00t_blackhole" \
  "$tree/usr/share/doc/gr00t-blackhole/copyright"; do
  [ -e "$file" ] || die "The package lacks ${file#"$tree"}."
done
for setting in "$tree"/etc/gr00t-blackhole/*; do
  dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./conffiles | grep -qx "${setting#"$tree"}" ||
    die "An update would write over ${setting#"$tree"}: it is not among the conffiles."
done
weights=$(find "$tree" -name '*.safetensors' -o -size +"${FILE_LIMIT}c")
[ -z "$weights" ] || die "The package holds what may be weights: $weights"

# --- Units ---

check_units() {
  local complaints
  # The targets that they wait for come with systemd.
  cp -rn /usr/lib/systemd/system/. "$tree/usr/lib/systemd/system/"
  # shellcheck disable=SC2086
  complaints=$(systemd-analyze --root="$tree" --man=no verify $SERVICES 2>&1) && [ -z "$complaints" ]
  local status=$?
  printf '%s\n' "$complaints"
  return "$status"
}
if command -v systemd-analyze >/dev/null && systemd-analyze --help | grep -q -- --root; then
  step "systemd units" check_units || die "systemd would not take the units (see above)."
else
  not_run "systemd-analyze verify: there is none here that takes --root"
fi

# --- The program ---

run_program() { LD_LIBRARY_PATH=$prefix/lib:$LD_LIBRARY_PATH "$prefix/lib/gr00t_blackhole/gr00t_blackhole" "$@"; }

run_program --version | grep -q "^gr00t_blackhole " || die "The packed program does not run."
run_program node --default-config >/dev/null || die "The packed program has no node."

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
best=
for _ in 1 2 3 4 5; do
  start=$(milliseconds)
  run_program --version >/dev/null
  took=$(($(milliseconds) - start))
  [ -n "$best" ] && [ "$best" -le "$took" ] || best=$took
done
say "program: $(stat -c %s "$prefix/lib/gr00t_blackhole/gr00t_blackhole") bytes without line tables; starts and ends in $best ms"
say "the Debian package is as it should be; it was not installed, see packaging/check_image.sh"
