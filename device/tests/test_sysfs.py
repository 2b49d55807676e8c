"""What the driver tells, from a folder that looks like its own."""

from pathlib import Path

import pytest
from gr00t_device_worker import sysfs


def test_a_card_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the units of `telemetry`; what is not a number is not there."""
    card = tmp_path / "tenstorrent!1"
    sensors = card / "device" / "hwmon" / "hwmon3"
    sensors.mkdir(parents=True)
    (tmp_path / "version").write_text("2.4.1\n")
    (card / "tt_fw_bundle_ver").write_text("18.12.0.0\n")
    (card / "tt_aiclk").write_text("unknown\n")
    (sensors / "temp1_input").write_text("51500\n")
    (sensors / "power1_input").write_text("64000000\n")
    monkeypatch.setattr(sysfs, "_DRIVER", tmp_path / "version")
    monkeypatch.setattr(sysfs, "_CARDS", tmp_path)
    assert sysfs.facts(1) == {
        "driver": "2.4.1",
        "firmware": "18.12.0.0",
        "temperature_c": 51.5,
        "power_w": 64.0,
        "clock_mhz": None,
    }
    assert set(sysfs.facts(0).values()) == {"2.4.1", None}
