"""Tests that run on a device are skipped where there is none, or none that can do what they need.

Two simulators are known: ttsim, a library, and wolfpine, a folder, which has no traces, no
multicast and no weights in bfp8_b, and takes minutes for large products."""

import os
from pathlib import Path

import pytest


def reason_without_device() -> str | None:
    simulator = os.environ.get("TT_METAL_SIMULATOR")
    if not simulator:
        return "TT_METAL_SIMULATOR is not set: no simulator to run kernels on"
    if not Path(simulator).exists():
        return f"TT_METAL_SIMULATOR names {simulator}, which does not exist"
    return None


def is_plain() -> bool:
    return Path(os.environ["TT_METAL_SIMULATOR"]).is_dir()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "device: runs kernels on a simulated device")
    config.addinivalue_line("markers", "full: needs traces, multicast, block floating point or speed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = reason_without_device()
    for item in items:
        if reason and item.get_closest_marker("device"):
            item.add_marker(pytest.mark.skip(reason=reason))
        elif not reason and is_plain() and item.get_closest_marker("full"):
            item.add_marker(
                pytest.mark.skip(
                    reason="this simulator has no traces, multicast or block floating point, or is too slow"
                )
            )
