"""`kernels/lowered.h` says what the Rust source says."""

import re
from pathlib import Path

from lowered import CHOICES, INSTRUCTIONS

HEADER = (Path(__file__).resolve().parents[1] / "lowered.h").read_text()


def test_codes_and_operands_are_those_of_the_rust_source() -> None:
    found = {}
    for name, code, rest in re.findall(r"struct (\w+) \{ enum : uint32_t \{ code = (\d+)(.*?) \}; \};", HEADER):
        operands = [operand.strip() for operand in rest.split(",") if operand.strip()]
        assert not operands or operands[0].endswith("= HEAD"), name
        found[name] = (int(code), [operand.removesuffix("= HEAD").strip() for operand in operands])
    expected = {name: (code, list(operands)) for name, (code, operands) in INSTRUCTIONS.items()}
    assert found == expected


def test_choices_stand_in_the_same_order() -> None:
    def enumerators(name: str) -> list[str]:
        body = re.search(rf"enum {name} : uint32_t \{{(.*?)\}}", HEADER)
        assert body, name
        return [value.strip().replace("_", "") for value in body[1].split(",")]

    prefixes = {"TileFormat": "WEIGHTS"}
    renamed = {"NormScaling": {"NONE": "UNSCALED"}}
    for name in ("BlockFormat", "TileFormat", "Activation", "NormScaling", "RowMotion"):
        upper = [renamed.get(name, {}).get(value.upper(), value.upper()) for value in CHOICES[name]]
        assert enumerators(name) == [prefixes.get(name, "") + value for value in upper], name
