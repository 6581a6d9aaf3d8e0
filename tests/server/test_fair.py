"""A table that callers share: the one with the most entries loses the next, so it cannot push out the others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.server.fair import FairTable

Key = tuple[str, str, int]
LIMIT = 12
OWNERS, GROUPS = st.sampled_from("ABC"), st.sampled_from("xyz")
STEPS = st.lists(st.tuples(st.sampled_from(["put", "put", "put", "use", "pop"]), OWNERS, GROUPS, st.integers(0, 30)))


def owners(table: FairTable[Key, int]) -> Counter[str]:
    return Counter(key[0] for key, _ in table.items())


def put(table: FairTable[Key, int], key: Key, limit: int = LIMIT) -> None:
    table.put(key, 0, key[0], key[1])
    table.shrink(limit, key[0])


@settings(deadline=None, max_examples=300)
@given(STEPS)
def test_what_goes_is_of_the_owner_with_the_most_and_the_oldest_in_its_largest_group(
    steps: list[tuple[str, str, str, int]],
) -> None:
    table: FairTable[Key, int] = FairTable()
    known: list[Key] = []  # the one that was not used for longest first
    for what, *named in steps:
        key: Key = tuple(named)  # type: ignore[assignment]
        if what == "pop":
            table.pop(key)
        elif what == "put":
            put(table, key)
        elif key in known:
            table.use(key)
        present = key in known
        known = [other for other in known if other != key]
        if what == "put" or (what == "use" and present):
            known.append(key)
        if len(known) > LIMIT:
            sizes, groups = Counter(one[0] for one in known), Counter(one[:2] for one in known)
            largest = {owner for owner, size in sizes.items() if size == max(sizes.values())}
            (gone,) = set(known) - {found for found, _ in table.items()}
            loser = key[0] if key[0] in largest else gone[0]  # among equals who did not add it, any may lose
            assert loser in largest
            most = max(count for (owner, _), count in groups.items() if owner == loser)
            known.remove(next(one for one in known if one[0] == loser and groups[one[:2]] == most))
        assert [found for found, _ in table.items()] == known


@settings(deadline=None, max_examples=200)
@given(st.integers(0, LIMIT), st.lists(GROUPS, max_size=100), st.lists(st.tuples(OWNERS, GROUPS), max_size=LIMIT))
def test_no_number_of_entries_pushes_out_those_of_an_owner_who_has_fewer(
    few: int, flood: list[str], others: list[tuple[str, str]]
) -> None:
    table: FairTable[Key, int] = FairTable()
    for number, (owner, group) in enumerate(others):
        put(table, (owner, group, number))
    for number in range(few):
        put(table, ("few", "x", number))
    for number, group in enumerate(flood):
        before = {key for key, _ in table.items()}
        put(table, ("many", group, number))
        sizes = owners(table)
        gone = before - {key for key, _ in table.items()}
        assert all(sizes[key[0]] + 1 >= sizes["many"] for key in gone)
        assert len(table) <= LIMIT


def test_an_owner_who_fills_the_table_leaves_others_what_they_have() -> None:
    table: FairTable[Key, int] = FairTable()
    put(table, ("few", "x", 0), 10)
    for number in range(1000):
        put(table, ("many", "x", number), 10)
    assert owners(table) == {"few": 1, "many": 9}


def test_a_group_that_fills_the_table_leaves_the_owners_other_groups_what_they_have() -> None:
    table: FairTable[Key, int] = FairTable()
    put(table, ("one", "few", 0), 10)
    for number in range(1000):
        put(table, ("one", "many", number), 10)
    assert Counter(key[1] for key, _ in table.items()) == {"few": 1, "many": 9}


def test_owners_who_are_gone_leave_nothing_behind() -> None:
    table: FairTable[Key, int] = FairTable()
    for number in range(1000):
        put(table, (f"owner {number}", f"group {number}", 0), 10)
    assert len(table._owners) == len(table._sizes) == 10
    for key, _ in list(table.items()):
        table.pop(key)
    assert not table._owners
    assert not table._sizes


def test_a_table_can_be_gone_through_while_others_add_to_it() -> None:
    table: FairTable[Key, int] = FairTable()
    for number in range(3):
        put(table, ("a", "g", number))
    for key, value in table.items():
        put(table, ("b", "g", key[2] + value))
    assert len(table) == 6
