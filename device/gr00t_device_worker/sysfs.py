"""What the driver tells of a card, without tt-metal."""

from pathlib import Path

_DRIVER = Path("/sys/module/tenstorrent/version")
_CARDS = Path("/sys/class/tenstorrent")


def facts(device: int) -> dict[str, object]:
    """Driver, firmware, temperature (deg C), power (W), clock (MHz); `None` for what is not there."""
    card = _CARDS / f"tenstorrent!{device}"
    return {
        "driver": _text(_DRIVER),
        "firmware": _text(card / "tt_fw_bundle_ver"),
        "temperature_c": _sensor(card, "temp1_input", 1000),
        "power_w": _sensor(card, "power1_input", 1_000_000),
        "clock_mhz": _number(card / "tt_aiclk", 1),
    }


def _sensor(card: Path, name: str, scale: int) -> float | None:
    found = sorted(card.glob(f"device/hwmon/hwmon*/{name}"))
    return _number(found[0], scale) if found else None


def _number(path: Path, scale: int) -> float | None:
    text = _text(path)
    try:
        return None if text is None else int(text.split()[0]) / scale
    except (ValueError, IndexError):
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
