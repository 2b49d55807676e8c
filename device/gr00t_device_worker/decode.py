"""From JSON to dataclasses, strictly: every field there, none besides, each of its type and in its range."""

import dataclasses
import types
import typing
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from .refusal import Refusal

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Range:
    """Least and greatest value of a number, or length of a text in bytes or of a list."""

    least: int
    most: int


def decode(kind: type[T], value: object, path: str) -> T:
    """The value as `kind`; refuses what is none, with the path to it."""
    return typing.cast(T, _decode(kind, value, path))


def _decode(kind: Any, value: object, path: str) -> Any:
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *limits = get_args(kind)
        decoded = _decode(inner, value, path)
        for limit in limits:
            _check(limit, decoded, path)
        return decoded
    if origin is Literal:
        return _one_of(get_args(kind), value, path)
    if origin in (Union, types.UnionType):
        return _union(get_args(kind), value, path)
    if origin is list:
        return _list(get_args(kind)[0], value, path)
    if origin is tuple:
        return _tuple(get_args(kind), value, path)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, path)
    # `True` is an `int` to Python.
    if type(value) is not kind:
        raise _wrong(path, kind.__name__, value)
    return value


def _wrong(path: str, wanted: str, value: object) -> Refusal:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return Refusal("argument", f"{path} is {shown}; it has to be {wanted}")


def _check(limit: Range, value: Any, path: str) -> None:
    size = len(value.encode()) if isinstance(value, str) else value
    size = len(value) if isinstance(value, list) else size
    if size is not None and not limit.least <= size <= limit.most:
        what = "" if isinstance(value, int) else "of a length "
        raise _wrong(path, f"{what}from {limit.least} to {limit.most}", value)


def _one_of(accepted: tuple[object, ...], value: object, path: str) -> object:
    if value not in accepted or isinstance(value, bool):
        raise _wrong(path, "one of " + ", ".join(map(str, accepted)), value)
    return value


def _union(kinds: tuple[Any, ...], value: object, path: str) -> Any:
    """`X | None`, or dataclasses that differ in the literal of their field `kind`."""
    kinds_left = [kind for kind in kinds if kind is not type(None)]
    if value is None and len(kinds_left) < len(kinds):
        return None
    if len(kinds_left) == 1:
        return _decode(kinds_left[0], value, path)
    tags = {get_args(typing.get_type_hints(kind)["kind"])[0]: kind for kind in kinds_left}
    if not isinstance(value, dict):
        raise _wrong(path, "an object", value)
    tag = _one_of(tuple(tags), value.get("kind"), f"{path}.kind")
    return _decode(tags[tag], value, path)


def _list(kind: Any, value: object, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(path, "a list", value)
    return [_decode(kind, item, f"{path}[{index}]") for index, item in enumerate(value)]


def _tuple(kinds: tuple[Any, ...], value: object, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) != len(kinds):
        raise _wrong(path, f"a list of {len(kinds)}", value)
    items = zip(kinds, value)
    return tuple(_decode(kind, item, f"{path}[{i}]") for i, (kind, item) in enumerate(items))


def _dataclass(kind: Any, value: object, path: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(path, "an object", value)
    hints = typing.get_type_hints(kind, include_extras=True)
    if missing := sorted(set(hints) - set(value)):
        raise Refusal("argument", f"{path} has no field {missing[0]!r}")
    if unknown := sorted(set(value) - set(hints)):
        raise Refusal("argument", f"{path} has a field {unknown[0]!r}, which is unknown")
    return kind(**{name: _decode(hint, value[name], f"{path}.{name}") for name, hint in hints.items()})
