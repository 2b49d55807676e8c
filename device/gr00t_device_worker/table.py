"""Things that the client calls by number."""

from typing import Generic, TypeVar

from .refusal import Refusal

T = TypeVar("T")


class Table(Generic[T]):
    """Numbered from 1; nothing is ever taken out."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._items: list[T] = []

    def add(self, item: T) -> int:
        """Its number."""
        self._items.append(item)
        return len(self._items)

    def get(self, number: int) -> T:
        """The item of this number."""
        if not 1 <= number <= len(self._items):
            raise Refusal("unknown", f"there is no {self._what} {number}; there are {len(self._items)}")
        return self._items[number - 1]

    def __len__(self) -> int:
        return len(self._items)
