# The node and the HTTP server in one image; compose.yaml shows how both are run.
#
#   docker build --tag gr00t-blackhole:jazzy .
#   docker build --build-arg ROS_DISTRO=humble --tag gr00t-blackhole:humble .
#
# Weights are never part of it: they come in by a volume, or are fetched into one.
ARG ROS_DISTRO=jazzy
ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-slim-bookworm AS rust

FROM ros:${ROS_DISTRO}-ros-base AS build
COPY --from=rust /usr/local/cargo /usr/local/cargo
COPY --from=rust /usr/local/rustup /usr/local/rustup
ENV RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/usr/local/cargo PATH=/usr/local/cargo/bin:$PATH
COPY packaging/image/build_tools.sh /tmp/
RUN /tmp/build_tools.sh
COPY package.xml /source/
# The messages and libraries of ROS 2 that package.xml names.
RUN apt-get update && rosdep update --rosdistro "$ROS_DISTRO" && \
    rosdep install --from-paths /source --ignore-src --default-yes --rosdistro "$ROS_DISTRO" && \
    rm -rf /var/lib/apt/lists/*
COPY . /source
SHELL ["/bin/bash", "-c"]
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    source "/opt/ros/$ROS_DISTRO/setup.bash" && /source/packaging/image/build.sh /source /workspace

FROM ros:${ROS_DISTRO}-ros-core
COPY packaging/image/install.sh packaging/image/healthcheck.sh packaging/image/healthcheck.py /usr/lib/gr00t-blackhole/
RUN --mount=type=bind,from=build,source=/source/out/deb,target=/deb \
    /usr/lib/gr00t-blackhole/install.sh /deb/*.deb
ENV HOME=/var/lib/gr00t-blackhole \
    ROS_LOG_DIR=/var/lib/gr00t-blackhole/log \
    HF_HOME=/var/cache/gr00t-blackhole/huggingface \
    GR00T_CACHE_DIR=/var/cache/gr00t-blackhole/prepared \
    TT_METAL_CACHE=/var/cache/gr00t-blackhole/kernels
VOLUME /var/lib/gr00t-blackhole /var/cache/gr00t-blackhole
USER gr00t-blackhole
WORKDIR /var/lib/gr00t-blackhole
# A checkpoint of 7 GB is read before the first answer.
HEALTHCHECK --interval=30s --timeout=20s --start-period=15m --retries=3 \
    CMD ["/usr/lib/gr00t-blackhole/healthcheck.sh", "node"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/gr00t_blackhole"]
CMD ["node", "--ros-args", "--params-file", "/etc/gr00t-blackhole/node.yaml"]
