"""A session's records become moments, and what stands out of each is said in words for people."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ui_journal import DENIED

from fairlead.lifecycle import EVENTS
from fairlead.ui.findings import line
from fairlead.ui.lanes import APART, MANY, Axis, Marker, lanes, pushed_apart, turns
from fairlead.ui.moments import Grouping, Row, SessionMoment, row_of, standing_out, subagents_of, timeline_of
from fairlead.ui.pages.session import moment_row


@pytest.fixture
def moments(reader):
    return timeline_of(reader, "calls").moments


@pytest.fixture
def call(moments):
    """The moment of a tool call, by what it works on."""

    def find(what: str) -> SessionMoment:
        (found,) = [moment for moment in moments if moment.lane == "tool" and what in moment.what]
        return found

    return find


def words_of(moment: SessionMoment) -> list[str]:
    return [one.mark.word for one in moment.findings]


def test_the_records_of_a_call_are_one_moment(call):
    assert [row.event for row in call("calc.py").rows] == [
        "tool_requested", "before_tool", "before_permission", "after_permission", "after_tool",
    ]  # fmt: skip


def test_every_record_is_in_exactly_one_moment(reader, moments):
    recorded = [seq for (seq,) in reader.db.execute("SELECT seq FROM records WHERE session = 'calls' ORDER BY seq")]
    assert sorted(row.seq for moment in moments for row in moment.rows) == recorded


def test_a_denial_says_who_and_why(call):
    first = call("git push").findings[0]
    assert (first.mark.word, first.by, first.why) == ("denied", DENIED, "Force-push is off here.")


def test_a_denial_because_a_hook_broke_is_no_denial_by_policy(call):
    (first, *_) = call("notes/log.md").findings
    assert first.mark.word == "hook failed"
    assert first.by == "closed-folders"
    assert first.why == "RuntimeError: the list of closed folders cannot be read (so it was denied)"
    assert "denied" not in words_of(call("notes/log.md"))


def test_a_change_is_shown_with_what_it_became(call):
    first = call("rm -rf build").findings[0]
    assert (first.mark.word, first.why, first.by) == ("changed", "→ mv build .trash/", "trash")


def test_an_approval_names_the_human(call):
    first = call("git commit").findings[0]
    assert (first.mark.word, first.by, first.why) == ("approved", "you", "Commit this? looks right")


def test_what_a_monitored_hook_would_have_done_stands_out(call):
    first = call("make all").findings[0]
    assert (first.mark.word, first.why) == ("would have", "would have denied: not on this machine")


def test_an_answer_in_place_of_the_call_stands_out(call):
    assert words_of(call("cached.txt")) == ["answered instead"]


def test_a_hook_that_only_adds_context_stands_out_although_its_control_is_proceed(call):
    first = call("pytest").findings[0]
    assert (first.mark.word, first.why) == ("told the model", "OK")


def test_a_turn_that_goes_on_says_so(moments):
    ends = [moment for moment in moments if moment.name == "wants to end the turn"]
    assert [words_of(moment) for moment in ends] == [["kept going"], []]
    assert ends[0].findings[0].why == "FAIL: test_add"


def test_what_stands_out_is_in_order_of_importance(moments):
    ranks = [one.rank for one, _ in standing_out(moments)]
    assert ranks == sorted(ranks)
    assert standing_out(moments)[0][0].mark.word == "denied"


def test_bookkeeping_is_quiet_and_the_story_is_not(reader):
    found = {moment.rows[0].event: moment.is_quiet for moment in timeline_of(reader, "every-event").moments}
    assert found["before_input"] is False
    assert found["before_model"] is False
    assert found["before_turn_end"] is False
    assert found["session_start"] is True
    assert found["turn_start"] is True


def test_the_moments_of_a_subagent_name_it(moments):
    assert {moment.agent for moment in moments} == {None, "explorer"}


def test_pages_have_every_moment_once(reader, moments):
    seen, after = [], 0
    while after is not None:
        page = timeline_of(reader, "calls", after=after, limit=4)
        assert len(page.moments) <= 4
        seen += [row.seq for moment in page.moments for row in moment.rows]
        after = page.more
    assert sorted(seen) == sorted(row.seq for moment in moments for row in moment.rows)


def test_a_session_without_subagents_has_none(reader):
    assert subagents_of(reader, "calls") == []


def test_a_line_of_a_long_text_is_the_first_that_says_something():
    assert line("=====\n\n  FAIL: test_add\nmore") == "FAIL: test_add"
    assert line("-----") == "-----"
    assert line([{"type": "text", "text": "hello"}]) == "hello"


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(anything)
def test_any_value_has_a_line(value):
    assert isinstance(line(value), str)
    assert len(line(value)) <= 300


def odd(*names: str, **given):
    """Objects that have some of these names, with anything in their places."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, anything) | given)


parts = odd("hook", "question", "unsupported", verdict=odd("control", "reason", "context", "warnings", "changes"),
            failure=odd("hook", "error", "control"), monitored=odd("hook", verdict=odd("control", "reason")),
            approval=odd("answer", "who", "why"))  # fmt: skip
bodies = odd("took", "step", "control", "effect", "winner", "left", "runs", "redacted", "unanswered", "parent",
             said=st.lists(parts, max_size=3))  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), bodies), max_size=4))
def test_records_of_any_shape_can_be_shown(recorded):
    grouping = Grouping("s", lambda value: value)
    for seq, (event, body) in enumerate(recorded, 1):
        grouping.add(row_of(seq, f"r-{seq}", seq * 10**9, "s", event, msgspec.json.encode(body)))
    for moment in grouping.moments:
        grouping.finish(moment)
        assert moment_row(moment, 0.0)


def test_a_damaged_record_says_so():
    grouping = Grouping("s", lambda value: value)
    moment = grouping.add(row_of(1, "r-1", 0, "s", "before_tool", b"{"))
    grouping.finish(moment)
    assert words_of(moment) == ["damaged record"]


# --- lanes ------------------------------------------------------------------------------------------


def moment_at(began: float, ended: float, **fields) -> SessionMoment:
    row = Row(1, "r-1", "s", fields.pop("event", "before_tool"), {}, began, ended)
    return SessionMoment([row], "tool", "bash", "", None, **fields)


spans = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e4)), min_size=1, max_size=100)


@given(spans)
def test_the_axis_keeps_the_order_of_times_within_the_picture(found):
    axis = Axis([moment_at(begin, begin + length) for begin, length in found])
    times = sorted(time for begin, length in found for time in (begin, begin + length))
    places = [axis.at(time) for time in times]
    assert places == sorted(places)
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in places)


def test_a_long_gap_is_cut_out():
    axis = Axis([moment_at(0, 10), moment_at(7200, 7210)])
    assert [round(length) for _, length in axis.gaps] == [7190]
    assert axis.at(10) < 50 < axis.at(7200)


def test_the_picture_says_how_long_a_gap_was():
    assert ">2 h<" in lanes([moment_at(0, 10), moment_at(7210, 7220)])


def test_many_gaps_leave_room_for_what_happened():
    axis = Axis([moment_at(hour * 3600, hour * 3600 + 20) for hour in range(200)])
    assert len(list(axis.gaps)) == 199
    assert sum(span.width for span in axis.spans) > 50
    assert all(span.width > 0 for span in axis.spans)


def test_a_short_gap_is_kept():
    assert list(Axis([moment_at(0, 10), moment_at(11, 20)]).gaps) == []


@given(st.lists(st.floats(0, 100), max_size=200))
def test_no_marker_is_over_another(places):
    placed = pushed_apart([Marker(at, at, [moment_at(at, at)]) for at in sorted(places)])
    assert len(placed) <= MANY
    assert all(one.place - other.place >= APART - 1e-6 for other, one in pairwise(placed))
    assert all(0 <= one.place <= 100 for one in placed)
    assert sum(len(one.moments) for one in placed) == len(places)


def test_a_turn_goes_from_a_message_to_the_next():
    found = [moment_at(0, 1, is_user=True), moment_at(2, 3), moment_at(10, 11, is_user=True), moment_at(12, 13)]
    assert list(turns(found)) == [(0, 3), (10, 13)]


def test_every_decision_is_marked_on_the_picture(moments):
    drawn = lanes(moments)
    marked = [moment for moment in moments if moment.findings]
    assert len(marked) > 5
    for moment in marked:
        assert f'<a href="#m{moment.seq}" class="marker {moment.findings[0].mark.family}"' in drawn
    assert "style=" not in drawn
