"""`fairlead approvals watch`: each question as it comes, how long is left, and the answer from the terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from ..display import escape, paint, print_line
from ..server.answers import WaitingCall, answer_call, calls_of, read_questions
from ..server.approvals import Question
from ..server.grants import GrantScope
from .approvals import grant_of, rows_of_call, rows_of_question

POLL = 0.5
"""Seconds between two looks at the questions."""
TOO_EARLY = 0.7
"""Seconds after a question appears in which typing does not count: it was meant for something else."""
HELP = {
    "a": "approve once",
    "d [WHY]": "deny",
    "s": "grant it in this session",
    "p": "grant it for this project",
    "u 18:00": "grant it for this project until then",
    "n": "the next question",
    "q": "quit",
}


def watch(name: str | None, *, as_json: bool) -> int:
    """Show questions until the user quits; or one question, until it has its answer."""
    if as_json:
        return _stream(name)
    refusal = _why_not_here()
    if refusal is None:
        with _typing():
            return _Watch(name).run()
    print(f"You cannot answer here: {refusal}", file=sys.stderr)
    return _show_only(name)


def _why_not_here() -> str | None:
    """Why no answer is taken from here."""
    from ..errors import FairleadError
    from .consent import need_a_person

    try:
        need_a_person("approve")
    except FairleadError as error:
        return str(error)
    return None


def _open(name: str | None) -> list[Question]:
    return [question for question in read_questions() if name is None or question.id.startswith(name)]


def _state_of(name: str) -> str:
    return next((question.state for question in read_questions(every=True) if question.id == name), "gone")


# --- without answers ------------------------------------------------------------------------------


def _events(name: str | None) -> Iterator[tuple[str, Question]]:
    """Each question when it comes and when it ends."""
    known: dict[str, Question] = {}
    while True:
        questions = {question.id: question for question in _open(name)}
        for gone in known.keys() - questions.keys():
            yield "ended", replace(known[gone], state=_state_of(gone), waiting=False)
        for one in questions.keys() - known.keys():
            yield "asked", questions[one]
        if name is not None and not questions:
            return
        known = questions
        time.sleep(POLL)


def _stream(name: str | None) -> int:
    for event, question in _events(name):
        print_line({"event": event, **msgspec.to_builtins(question)})
        sys.stdout.flush()
    return 0


def _show_only(name: str | None) -> int:
    for event, question in _events(name):
        lines = _block(WaitingCall([question])) if event == "asked" else [f"{question.id}: {question.state}", ""]
        print("\n".join(lines), flush=True)
    return 0


# --- with answers ---------------------------------------------------------------------------------


def _block(call: WaitingCall) -> list[str]:
    """All of a call and of what is asked about it."""
    from ..redaction.masking import lay_out

    rows = [row for question in call.questions for row in rows_of_question(question)]
    rows += rows_of_call(call.questions[0])
    heading = paint(" ".join(escape(name) for name in call.ids), "bold")
    return [heading, lay_out(rows), ""]


def _choices(call: WaitingCall) -> str:
    refusal = call.no_grant
    ways = [f"{key}: {what}" for key, what in HELP.items() if refusal is None or "grant" not in what]
    return "\n".join([*(f"  {way}" for way in ways), *([f"  (no grant: {escape(refusal)})"] if refusal else [])])


@contextmanager
def _typing() -> Iterator[None]:
    """Read keys as they are typed, without an echo by the terminal."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        print()


class _Watch:
    """Shows one call at a time, and takes the answer to it."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._current: WaitingCall | None = None
        self._since = 0.0
        self._typed = ""
        self._later: set[tuple[str, ...]] = set()
        """Calls that the user has put off."""

    def run(self) -> int:
        print("Waiting for questions. Ctrl-C quits.")
        while True:
            self._update()
            if self._name is not None and self._current is None:
                return 0
            line = self._read_line()
            if line is not None and self._answer(line):
                return 0

    def _update(self) -> None:
        """Look which call is to be shown. What was typed for another one does not count."""
        calls = [call for call in calls_of(_open(self._name)) if call.ids not in self._later]
        if self._current is not None:
            same = next((call for call in calls if call.ids == self._current.ids), None)
            if same is not None:
                self._current = same
                self._prompt()
                return
            self._line(f"{self._current.ids[0]}: {_state_of(self._current.ids[0])}")
        self._current = calls[0] if calls else None
        self._forget_typing()
        if self._current is not None:
            self._line("\a" + "\n".join([*_block(self._current), _choices(self._current)]))
            self._prompt()

    def _forget_typing(self) -> None:
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        self._typed, self._since = "", time.monotonic()

    def _line(self, text: str) -> None:
        print(f"\r\x1b[K{text}", flush=True)

    def _prompt(self) -> None:
        left = "" if self._current is None else f"{self._current.left} "
        print(f"\r\x1b[K{left}> {escape(self._typed)}", end="", flush=True)

    def _read_line(self) -> str | None:
        """What the user typed, once Enter ends it; None if that is not yet."""
        if not select.select([sys.stdin], [], [], POLL)[0]:
            return None
        keys = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
        if not keys or "\x04" in keys:
            return "q"
        if time.monotonic() - self._since < TOO_EARLY:
            return None
        for key in keys:
            if key in "\r\n":
                line, self._typed = self._typed, ""
                return line
            if key in "\x7f\b":
                self._typed = self._typed[:-1]
            elif key.isprintable():
                self._typed += key
        self._prompt()
        return None

    def _answer(self, line: str) -> bool:
        """Do what a line says. True to quit."""
        word, _, rest = line.strip().partition(" ")
        if word == "q":
            return True
        if self._current is None or not word:
            return False
        if word == "n":
            self._later.add(self._current.ids)
            self._current = None
        elif word not in ("a", "d", "s", "p", "u"):
            self._line(f"{escape(word)} is no answer:\n{_choices(self._current)}")
        else:
            self._send(self._current, word, rest.strip() or None)
        return False

    def _send(self, call: WaitingCall, word: str, rest: str | None) -> None:
        """Answer every question of the call as it was shown."""
        from ..errors import FairleadError

        scopes: dict[str, GrantScope] = {"s": "session", "p": "project"}
        try:
            if word == "u" and rest is None:
                raise FairleadError("until when? Type u 18:00")
            if word in "spu" and call.no_grant is not None:
                raise FairleadError(f"there is no grant for this: {call.no_grant}")
            grant = grant_of(scopes.get(word), rest if word == "u" else None, None)
            why = None if word == "u" else rest
            shown = [(question.id, question.shown or None) for question in call.questions]
            for answered in answer_call(shown, word != "d", why, grant):
                self._line(f"{answered.id}: {answered.state}")
        except FairleadError as error:
            self._line(paint(escape(str(error), keep_lines=True), "yellow"))
            return
        self._later.add(call.ids)  # its other questions, after a refusal, are of no interest
        self._current = None
