#!/bin/bash
# Packs what colcon has built as a Debian package for the ROS 2 that is sourced, into out/deb.
#
#   colcon build --packages-select gr00t_blackhole && packaging/build_deb.sh build/gr00t_blackhole
#
# BUILD is colcon's build folder of the package. The package installs into /opt/ros/DISTRO, as those of ROS do, and adds
# the command gr00t_blackhole, two services, and their settings in /etc/gr00t-blackhole.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 1 ] && [ -e "$1/cmake_install.cmake" ] || die "usage: packaging/build_deb.sh BUILD (colcon's build folder of gr00t_blackhole)"
: "${ROS_DISTRO:?source the setup.bash of the ROS 2 that the package was built for}"
for tool in cmake cpack dpkg-shlibdeps; do
  command -v "$tool" >/dev/null || die "$tool is missing: install it (Debian and Ubuntu: cmake, dpkg-dev) and run this again."
done

build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
prefix=$stage/opt/ros/$ROS_DISTRO
documents=$stage/usr/share/doc/gr00t-blackhole

install_program() { DESTDIR=$stage cmake --install "$build" --prefix "/opt/ros/$ROS_DISTRO" --strip; }

# Line tables stay beside the build; a robot needs no more than the program.
strip_program() { strip --strip-debug "$prefix/lib/gr00t_blackhole/gr00t_blackhole"; }

install_settings() {
  local units=$stage/usr/lib/systemd/system
  install -D -m 644 -t "$units" "$PACKAGING"/systemd/*.service &&
    install -D -m 644 "$PACKAGING/systemd/common.conf" "$units/gr00t-blackhole.service.d/50-common.conf" &&
    install -D -m 644 "$PACKAGING/systemd/common.conf" "$units/gr00t-blackhole-http.service.d/50-common.conf" &&
    install -D -m 644 -t "$stage/etc/gr00t-blackhole" "$PACKAGING"/etc/*
}

install_command() {
  mkdir -p "$stage/usr/bin" &&
    sed "s/@ROS_DISTRO@/$ROS_DISTRO/" "$PACKAGING/deb/gr00t_blackhole.in" >"$stage/usr/bin/gr00t_blackhole" &&
    chmod 755 "$stage/usr/bin/gr00t_blackhole"
}

install_documents() {
  install -D -m 644 -t "$documents" "$ROOT/README.md" "$ROOT"/docs/*.md &&
    install -D -m 644 -t "$documents/models" "$ROOT"/docs/models/*.md &&
    install -m 644 "$ROOT/LICENSE" "$documents/copyright"
}

# Maintainer scripts, and the list of the files that an update leaves as the user has made them.
control_files() {
  install -m 755 -t "$work" "$PACKAGING"/deb/{postinst,prerm,postrm} &&
    (cd "$stage" && find etc -type f | LC_ALL=C sort | sed 's#^#/#') >"$work/conffiles" &&
    chmod 644 "$work/conffiles"
}

depends() {
  local package
  echo adduser
  run_dependencies | while read -r package; do debian_name "$package"; done
}

pack() {
  rm -rf "$DEB_OUT" &&
    mkdir -p "$DEB_OUT" &&
    STAGE=$stage CONTROL=$work DEPENDS=$(depends | paste -sd, | sed 's/,/, /g') \
      VERSION=$(sed -nE 's#.*<version>(.*)</version>.*#\1#p' "$ROOT/package.xml") \
      cpack --config "$PACKAGING/deb/CPackConfig.cmake" -B "$DEB_OUT" &&
    rm -rf "$DEB_OUT/_CPack_Packages"
}

# (Steps are joined by && because a function that runs as a step does not stop at a failure.)
make_package() {
  install_program && strip_program && install_settings && install_command && install_documents && control_files && pack
}

step "Debian package" make_package || die "The Debian package could not be built (see above)."
say "$(built_deb): $(stat -c %s "$(built_deb)") bytes"
