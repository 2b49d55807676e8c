"""The instruction format, read from the Rust source: there is no second list of codes to keep up to date."""

import re
import struct
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RUST = REPOSITORY / "src/backend/blackhole/lowered"
NONE = 0xFFFF_FFFF
WORDS = 16

Operands = dict[str, str]


def _without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*", "", source)


def _instructions() -> dict[str, tuple[int, Operands]]:
    """Name to code and operands, each with its type."""
    source = _without_comments((RUST / "instruction.rs").read_text())
    table = source[source.index("\ninstructions! {") : source.index("#[cfg(test)]")]
    found = {}
    for name, code, body in re.findall(r"(\w+) = (\d+) \{(.*?)\}", table, re.DOTALL):
        found[name] = (int(code), dict(re.findall(r"(\w+): ([\w<>]+)", body)))
    return found


def _choices() -> dict[str, list[str]]:
    """Types whose operands are places in a list, with their values' names."""
    source = _without_comments((RUST / "field.rs").read_text())
    found = {}
    for path, body in re.findall(r"choices!\(([\w:]+):(.*?)\);", source, re.DOTALL):
        name = path.rsplit("::", 1)[-1]
        found[name] = [value.rsplit("::", 1)[-1] for value in re.findall(r"[\w:]+", body)]
    return found


INSTRUCTIONS = _instructions()
CHOICES = _choices()


def core(x: int, y: int) -> int:
    return x | y << 8


def rectangle(start: tuple[int, int], end: tuple[int, int]) -> int:
    return core(*start) | core(*end) << 16


def _word(kind: str, value: object) -> int:
    if kind in CHOICES:
        return CHOICES[kind].index(str(value))
    if value is None:
        return NONE
    if kind == "f32":
        return int.from_bytes(struct.pack("<f", value), "little")
    assert isinstance(value, int)
    return value


def encode(name: str, **operands: object) -> list[int]:
    """The words of an instruction; every operand has to be given, and no other."""
    code, kinds = INSTRUCTIONS[name]
    if set(operands) != set(kinds):
        raise ValueError(f"{name}: operands {sorted(set(operands) ^ set(kinds))} are missing or unknown")
    words = [code, 0] + [_word(kind, operands[field]) for field, kind in kinds.items()]
    return words + [0] * (WORDS - len(words))
