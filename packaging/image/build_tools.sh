#!/bin/bash
# What building the package needs beside ROS 2 and Rust, on Debian and Ubuntu: run as root in the image's build stage.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
# The C and C++ compilers of the crates and interfaces, bindgen's libclang, and what packs the .deb.
apt-get install --yes --no-install-recommends g++ cmake ninja-build libclang-dev dpkg-dev file python3-dev
rm -rf /var/lib/apt/lists/*
