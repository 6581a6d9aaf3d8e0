"""A table that callers share, of a limited size, in which no caller's entries push out those of one who has fewer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Entry(msgspec.Struct, Generic[V]):
    """A value, and whose it is: an owner's, in one of its groups."""

    value: V
    owner: str
    group: str
    used: int = 0


class FairTable(Generic[K, V]):
    """Values by key, the one that was not used for longest first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[K, Entry[V]] = OrderedDict()
        self._owners: dict[str, dict[str, OrderedDict[K, Entry[V]]]] = {}
        self._sizes: dict[str, int] = {}
        self._ticks = count()

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[K, V]]:
        # All at once, for a thread that writes them down while others are added.
        return ((key, entry.value) for key, entry in list(self._entries.items()))

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def use(self, key: K) -> None:
        """Note that an entry was used just now."""
        entry = self._entries[key]
        entry.used = next(self._ticks)
        self._entries.move_to_end(key)
        self._owners[entry.owner][entry.group].move_to_end(key)

    def put(self, key: K, value: V, owner: str, group: str) -> None:
        """Add an entry, in place of the one that goes by this key."""
        self.pop(key)
        self._entries[key] = entry = Entry(value, owner, group)
        self._owners.setdefault(owner, {}).setdefault(group, OrderedDict())[key] = entry
        self._sizes[owner] = self._sizes.get(owner, 0) + 1
        self.use(key)

    def pop(self, key: K) -> V | None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        groups = self._owners[entry.owner]
        del groups[entry.group][key]
        self._sizes[entry.owner] -= 1
        if not groups[entry.group]:
            del groups[entry.group]
        if not groups:
            del self._owners[entry.owner], self._sizes[entry.owner]
        return entry.value

    def shrink(self, limit: int, owner: str) -> None:
        """Make room for what an owner has added: the owner with the most entries loses some, of equals this one.

        It loses them in its group with the most entries, and there the one that was not used for longest.
        """
        while len(self._entries) > limit:
            loser = max(self._owners, key=lambda one: (self._sizes[one], one == owner))
            largest = max(self._owners[loser].values(), key=lambda group: (len(group), -_oldest(group)))
            self.pop(next(iter(largest)))


def _oldest(group: OrderedDict[K, Entry[V]]) -> int:
    return next(iter(group.values())).used
