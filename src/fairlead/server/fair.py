"""A shared table of limited size: a caller with many entries evicts only its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Slot(msgspec.Struct, Generic[V]):
    """A value, its owner, and the owner's group that it is in."""

    value: V
    owner: str
    group: str
    used: int = 0


class FairTable(Generic[K, V]):
    """Values by key, the least recently used first."""

    def __init__(self) -> None:
        self._slots: OrderedDict[K, Slot[V]] = OrderedDict()
        self._owners: dict[str, dict[str, OrderedDict[K, Slot[V]]]] = {}
        self._sizes: dict[str, int] = {}
        self._ticks = count()

    def __len__(self) -> int:
        return len(self._slots)

    def items(self) -> Iterator[tuple[K, V]]:
        # A copy, for a thread that saves them while others are added.
        return ((key, slot.value) for key, slot in list(self._slots.items()))

    def get(self, key: K) -> V | None:
        slot = self._slots.get(key)
        return None if slot is None else slot.value

    def use(self, key: K) -> None:
        """Mark an entry as just used."""
        slot = self._slots[key]
        slot.used = next(self._ticks)
        self._slots.move_to_end(key)
        self._owners[slot.owner][slot.group].move_to_end(key)

    def put(self, key: K, value: V, owner: str, group: str) -> None:
        """Add an entry, or replace the one with this key."""
        self.pop(key)
        self._slots[key] = slot = Slot(value, owner, group)
        self._owners.setdefault(owner, {}).setdefault(group, OrderedDict())[key] = slot
        self._sizes[owner] = self._sizes.get(owner, 0) + 1
        self.use(key)

    def pop(self, key: K) -> V | None:
        slot = self._slots.pop(key, None)
        if slot is None:
            return None
        groups = self._owners[slot.owner]
        del groups[slot.group][key]
        self._sizes[slot.owner] -= 1
        if not groups[slot.group]:
            del groups[slot.group]
        if not groups:
            del self._owners[slot.owner], self._sizes[slot.owner]
        return slot.value

    def shrink(self, limit: int, owner: str) -> None:
        """Evict entries beyond the limit, from the owner with the most; among equals, from this one.

        The owner loses the least recently used entry of its largest group.
        """
        while len(self._slots) > limit:
            loser = max(self._owners, key=lambda one: (self._sizes[one], one == owner))
            largest = max(self._owners[loser].values(), key=lambda group: (len(group), -_oldest(group)))
            self.pop(next(iter(largest)))


def _oldest(group: OrderedDict[K, Slot[V]]) -> int:
    return next(iter(group.values())).used
