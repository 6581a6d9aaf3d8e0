"""The code that an answer from a page needs: only the terminal that ran `fairlead ui --approve` shows it.

A browser may be driven by an agent, and what is typed into a page stays in it. So each code is good for one answer,
and the terminal then shows the next. After a few wrong ones the code is replaced, and after many no answer is taken
any more.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable

from ..errors import FairleadError

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # none that looks like another
LENGTH = 8
WRONG = 3
"""Wrong codes after which there is a new one."""
TOO_MANY = 12
"""Wrong codes after which this run takes no answer any more."""


class WrongCode(FairleadError):
    """The code is not the one that the terminal shows."""


class AnswerCode:
    """The current code. `show` tells the terminal."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._wrong = 0
        self._checking = threading.Lock()
        self._code = ""
        self._renew("Answers from the page need a code, a new one for each")

    def _renew(self, why: str) -> None:
        self._code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        self._show(f"{why}: {self._code[:4]}-{self._code[4:]}")

    def use(self, typed: str) -> None:
        """Use the code up. Raises `WrongCode` for any other."""
        with self._checking:
            if self._wrong >= TOO_MANY:
                raise WrongCode("there were too many wrong codes; start `fairlead ui --approve` again")
            if not hmac.compare_digest(_plain(typed).encode(), self._code.encode()):
                self._wrong += 1
                if self._wrong >= TOO_MANY:
                    self._show("Too many wrong codes: no answer is taken from the page any more")
                elif self._wrong % WRONG == 0:
                    self._renew("Wrong codes were typed into the page; the next code is")
                raise WrongCode("this is not the code that the terminal shows, where `fairlead ui --approve` runs")
            self._wrong = 0
            self._renew("The page answered a question; the next code is")


def _plain(typed: str) -> str:
    return "".join(character for character in typed.upper() if character.isascii() and character.isalnum())
