#!/bin/bash
# Installs the package and what it depends on, as root: image/install.sh DEB.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
deb=$(realpath "$1")
apt-get update
# Certificates are for downloads of checkpoints.
apt-get install --yes --no-install-recommends "$deb" ca-certificates
rm -rf /var/lib/apt/lists/*
# Volumes that are made later take over who owns these.
install -d -o gr00t-blackhole -g gr00t-blackhole -m 750 /var/lib/gr00t-blackhole /var/cache/gr00t-blackhole \
  /var/cache/gr00t-blackhole/huggingface /var/cache/gr00t-blackhole/prepared
