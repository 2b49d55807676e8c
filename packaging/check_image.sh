#!/bin/bash
# Runs the steps of the Dockerfile without a container engine, as far as they go: on a bare Debian, the package is installed
# by image/install.sh, then the node and the HTTP server run as in a container, with their health checks. Ends with what
# was not run. Needs root, debootstrap, and a package from packaging/check_deb.sh.
#
#   packaging/check_image.sh [--tools]      --tools: the build stage's tools are installed, too (some minutes)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck disable=SC1091
source "$ROS_DIR/env.sh"

readonly SHARED=/usr/lib/gr00t-blackhole
readonly CHECKPOINT=/var/lib/gr00t-blackhole/tiny
readonly USER_NAME=gr00t-blackhole
# Of DDS; the tests with ROS 2 peers take theirs by the same lock.
readonly DOMAIN=101
readonly HTTP=127.0.0.1:20999
# Longest start with a tiny checkpoint [s].
readonly START_LIMIT_S=60

with_tools=
[ "${1:-}" != --tools ] || with_tools=yes

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  say "not run: the steps of the image, which need root and debootstrap"
  exit
fi
if ! unshare --mount --propagation private --pid --fork true 2>/dev/null; then
  say "not run: the steps of the image, which need a mount namespace; here none can be made"
  exit
fi
[ -n "${GR00T_BLACKHOLE_LOCAL_ROS:-}" ] ||
  die "The bare root file system gets its ROS 2 from the project-local one: run scripts/setup.sh --local first."
# The check runs in namespaces of its own, with which its mounts and processes end. Only then, out here, where nothing was
# ever mounted, is the root file system removed.
if [ -z "${CHECK_IMAGE_ROOT:-}" ]; then
  exec 9>"/tmp/gr00t_blackhole_domain_$DOMAIN.lock"
  flock 9
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
  CHECK_IMAGE_ROOT=$root unshare --mount --propagation private --pid --fork --kill-child "${BASH_SOURCE[0]}" "$@"
  exit
fi

deb=$(built_deb)
root=$CHECK_IMAGE_ROOT
in_root() { chroot "$root" "$@"; }
# What runs a command as in the container: with the image's variables and user.
container=(chroot --userspec="$USER_NAME:$USER_NAME" "$root" env -i PATH="$PATH" HOME=/var/lib/gr00t-blackhole
  ROS_DISTRO="$ROS_DISTRO" ROS_LOG_DIR=/var/lib/gr00t-blackhole/log HF_HOME=/var/cache/gr00t-blackhole/huggingface
  GR00T_CACHE_DIR=/var/cache/gr00t-blackhole/prepared ROS_DOMAIN_ID="$DOMAIN")

# --- A bare Debian of this host's release ---

bare_root() {
  local codename
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME") &&
    debootstrap --variant=minbase "$codename" "$root" &&
    chmod 755 "$root" &&
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" &&
    mount -t proc proc "$root/proc" &&
    mount --rbind /dev "$root/dev" &&
    mount -t tmpfs tmpfs "$root/dev/shm"
}

# The project-local ROS 2 and its Python, at the paths that they know themselves by.
mount_ros() {
  local path
  for path in "$ROS_DIR" "$("$GR00T_BLACKHOLE_PYTHON" -c 'import sys; print(sys.base_prefix)')"; do
    mkdir -p "$root$path" && mount --bind -o ro "$path" "$root$path" || return
  done
  chmod 755 "$root/root"
}

# Entries of a list of paths, without those of the interfaces that lie beside the package.
without_interfaces() { tr ':' '\n' <<<"$1" | grep -v "^$GR00T_BLACKHOLE_INTERFACES\(/\|$\)" | paste -sd:; }

# A package that stands for those of ROS 2, and a setup.bash that leads to what has been mounted.
stand_in() {
  local tree=$root/tmp/stand-in prefix=/opt/ros/$ROS_DISTRO
  local packages=$prefix/lib/python3.12/site-packages
  mkdir -p "$tree/DEBIAN" "$tree$prefix" &&
    {
      echo "Package: ros-stand-in"
      echo "Version: 1"
      echo "Architecture: all"
      echo "Maintainer: gr00t_blackhole maintainers <maintainers@gr00t-blackhole.invalid>"
      echo "Description: stands for the ROS 2 packages that the project-local ROS 2 has"
      echo "Provides: $(run_dependencies | while read -r package; do debian_name "$package"; done | paste -sd, | sed 's/,/, /g')"
    } >"$tree/DEBIAN/control" &&
    {
      echo "export ROS_DISTRO=$ROS_DISTRO RMW_IMPLEMENTATION=rmw_fastrtps_cpp _ROS_WHEELS_BOOTSTRAP_COMPLETE=1"
      echo "export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST PATH=$GR00T_BLACKHOLE_LOCAL_ROS/bin:\$PATH"
      echo "export AMENT_PREFIX_PATH=$prefix:$(without_interfaces "$AMENT_PREFIX_PATH")"
      echo "export LD_LIBRARY_PATH=$prefix/lib:$(without_interfaces "$LD_LIBRARY_PATH")"
      echo "export PYTHONPATH=$packages:$(without_interfaces "$PYTHONPATH")"
    } >"$tree$prefix/setup.bash" &&
    dpkg-deb --root-owner-group --build "$tree" "$root/tmp/stand-in.deb" &&
    in_root dpkg --install /tmp/stand-in.deb
}

# --- The steps of the image ---

install_tools() {
  install -m 755 "$PACKAGING/image/build_tools.sh" "$root/tmp/" && in_root /tmp/build_tools.sh &&
    in_root sh -c 'c++ --version && cmake --version && ls /usr/lib/llvm-*/lib/libclang*.so*'
}

install_package() {
  install -D -m 755 -t "$root$SHARED" "$PACKAGING"/image/{install,healthcheck}.sh "$PACKAGING/image/healthcheck.py" &&
    cp "$deb" "$root/tmp/gr00t-blackhole.deb" &&
    in_root "$SHARED/install.sh" /tmp/gr00t-blackhole.deb
}

check_settings() {
  in_root getent passwd "$USER_NAME" &&
    [ "$(in_root stat -c '%a %U %G' /etc/gr00t-blackhole/http.env)" = "640 root $USER_NAME" ] &&
    [ "$(in_root stat -c '%a %U' /var/cache/gr00t-blackhole/prepared)" = "750 $USER_NAME" ]
}

# --- Running, as in a container ---

healthy() { "${container[@]}" "$SHARED/healthcheck.sh" "$@"; }

# until_healthy PID: waits until the health check passes, while the process lives.
until_healthy() {
  local deadline=$((SECONDS + START_LIMIT_S))
  until healthy "${health[@]}"; do
    kill -0 "$1" && [ "$SECONDS" -lt "$deadline" ] || return
    sleep 1
  done
}

# served ARGUMENT...: what runs with these arguments becomes healthy, ends by SIGTERM with status 0, and is unhealthy
# afterwards. The arguments of the health check are in `health`.
served() {
  local pid
  # Not by a function, whose process would be the shell's.
  "${container[@]}" /usr/bin/gr00t_blackhole "$@" &
  pid=$!
  until_healthy "$pid" || return
  kill -TERM "$pid"
  wait "$pid" || return
  ! healthy "${health[@]}"
}

run_node() {
  local health=(node)
  install -m 644 "$ROOT/config/gr1.yaml" "$root/etc/gr00t-blackhole/node.yaml" &&
    served node --ros-args --params-file /etc/gr00t-blackhole/node.yaml -p "snapshot:=$CHECKPOINT"
}
run_http() {
  local health=(http "http://$HTTP")
  served serve --http "$HTTP" --snapshot "$CHECKPOINT" --embodiment gr1
}
make_checkpoint() { "${container[@]}" /usr/bin/gr00t_blackhole synth --version n16 --size tiny --out "$CHECKPOINT"; }

remove_package() {
  in_root dpkg --purge "$(dpkg-deb -f "$deb" Package)" && [ ! -e "$root/etc/gr00t-blackhole" ] &&
    [ ! -e "$root/usr/bin/gr00t_blackhole" ] && [ ! -e "$root/var/cache/gr00t-blackhole" ] && [ -e "$root$CHECKPOINT" ]
}

step "bare Debian" bare_root || die "There is no bare Debian to work on (see above)."
step "ROS 2 of the bare Debian" mount_ros || die "The project-local ROS 2 cannot be mounted (see above)."
step "stand-in for the ROS 2 packages" stand_in || die "The stand-in does not install (see above)."
if [ -n "$with_tools" ]; then
  step "image: build tools" install_tools || die "The build tools do not install (see above)."
else
  not_run "build_tools.sh, which --tools adds"
fi
step "image: package" install_package || die "The package does not install (see above)."
step "image: user and settings" check_settings || die "User or settings are not as they should be (see above)."
step "container: synthetic checkpoint" make_checkpoint || die "The program does not run as the user $USER_NAME (see above)."
step "container: node" run_node || die "The node does not run as in a container (see above)."
step "container: HTTP server" run_http || die "The HTTP server does not run as in a container (see above)."
step "removal" remove_package || die "The package leaves something behind, or removes too much (see above)."
not_run "docker build: no engine"
not_run "rosdep install and colcon build inside the image: they need ROS 2's own package server; ros/colcon_check.sh builds against the project-local ROS 2"
not_run "a systemd that starts the services; packaging/check_deb.sh lets systemd read the units"
not_run "/dev/tenstorrent and hugepages: no card"
say "the steps of the image do what they should"
