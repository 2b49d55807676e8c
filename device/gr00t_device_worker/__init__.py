"""The device worker: owns a Tenstorrent card through the pinned `ttnn` wheel, and does what its client asks.

The protocol is described in `tt-metal-sys/PROTOCOL.md`.
"""
