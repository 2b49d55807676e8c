"""Just one version of ttnn is accepted."""

import importlib.metadata
import sys
from pathlib import Path

import pytest
from client import Client, Refused
from gr00t_device_worker import pin

DEVICE = Path(__file__).resolve().parent.parent


def test_a_wheel_of_another_version_is_refused(tmp_path: Path) -> None:
    """Before it is loaded: here there is nothing to load."""
    folder = tmp_path / "ttnn-0.80.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: ttnn\nVersion: 0.80.0\n")
    path = f"{tmp_path}:{DEVICE}"
    with Client([sys.executable, "-m", "gr00t_device_worker"], {"PYTHONPATH": path}) as client:
        assert (client.hello["worker"], client.hello["tt_metal"]) == (pin.WORKER, "0.80.0")
        with pytest.raises(Refused) as caught:
            client.open(pin.WORKER, pin.TTNN)
        assert caught.value.code == "version"
        with pytest.raises(Refused) as caught:
            client.open(pin.WORKER, "0.80.0")
        assert caught.value.code == "version" and pin.TTNN in caught.value.message


def test_no_wheel_is_the_empty_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not an error: the client says what is missing."""

    def missing(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert pin.installed() == ""
