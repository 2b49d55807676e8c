"""The build of the C++ worker says what is missing, or of another version."""

import shutil
import subprocess
from pathlib import Path

import pytest
from gr00t_device_worker import pin

CPP = Path(__file__).resolve().parent.parent / "cpp"

pytestmark = pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("c++") is None,
    reason="needs cmake and a C++ compiler",
)


def configure(build: Path, *settings: str) -> str:
    """What cmake says when it fails, in one line."""
    command = ["cmake", "-S", str(CPP), "-B", str(build), *settings]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    return " ".join(result.stderr.split())


def library(folder: Path, name: str, version: str) -> str:
    """A package of cmake that is nothing but its version."""
    place = folder / name
    place.mkdir()
    (place / f"{name}Config.cmake").touch()
    told = f'set(PACKAGE_VERSION "{version}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'
    (place / f"{name}ConfigVersion.cmake").write_text(told)
    return f"-D{name}_DIR={place}"


def test_headers_that_are_missing_are_named(tmp_path: Path) -> None:
    """With the version that is needed, and what to do."""
    json = library(tmp_path, "nlohmann_json", "3.11.0")
    text = configure(tmp_path / "build", json, "-DCMAKE_DISABLE_FIND_PACKAGE_TT-Metalium=ON")
    assert f"TT-Metalium {pin.TTNN} with its headers is needed" in text
    assert "-DCMAKE_PREFIX_PATH=<prefix>" in text


@pytest.mark.parametrize("version", ["0.81.0", "0.82.0", f"{pin.TTNN}.1"])
def test_another_version_is_refused(tmp_path: Path, version: str) -> None:
    """However near it is."""
    packages = library(tmp_path, "nlohmann_json", "3.11.0"), library(tmp_path, "TT-Metalium", version)
    text = configure(tmp_path / "build", *packages)
    assert f"has the version '{version}', this worker needs {pin.TTNN} exactly" in text
