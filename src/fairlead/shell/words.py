"""The words of a command after expansion: quotes removed, variables put in, braces multiplied.

Only what the line itself says is known. A word that also depends on something else (an unknown variable, the output
of a program, the files of a folder) is a `Word`: its text is as far as it is known, and `unknown` says what is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Self, Union

from .arithmetic import NotKnown, calculate
from .quoting import ANSI, character
from .tree import Arithmetic, Budget, Substitution, TextPart, Variable, WordPart, WordParts

LONGEST = 64 << 10
"""Characters of a value. Variables can double each other."""
MANY = 256
"""Words that braces may become."""
_GLOB = re.compile(r"[*?\[]|[@!+]\(")
_BRACE_SIGN = re.compile(r"[{},]")
_RANGE = re.compile(r"(-?\d+|[a-zA-Z])\.\.(-?\d+|[a-zA-Z])(?:\.\.(-?\d+))?")
_HELD = re.compile("[\ue000-\uf8ff]")
_FIRST_HELD = 0xE000
_BLANKS = re.compile(r"[ \t\n]+")
_DEFAULT_IFS = " \t\n"
_TILDE = re.compile(r"~\+?(?=/|$)")
_TILDE_OF_VALUE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*=)~(?=/|$)")
_DOLLAR_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*|[0-9#])\}?")
_NAME_IN_ARITHMETIC = re.compile(r"(?<![\w.])(?:[A-Za-z_][A-Za-z0-9_]*|(?<=\$)[0-9])")
_SET_IN_ARITHMETIC = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|([A-Za-z_]\w*)\s*(?:\+\+|--)")
_NUMBER = re.compile(r" ?-?\d+")
_CONTINUES_NAME = re.compile(r"[A-Za-z0-9_]+")


class Word(str):
    """A word that is not fully known: its text as far as it is, and what it also depends on."""

    __slots__ = ("unknown",)

    def __new__(cls, text: str, unknown: Iterable[str] = ()) -> Self:
        word = super().__new__(cls, text)
        word.unknown = tuple(dict.fromkeys(unknown))
        return word

    unknown: tuple[str, ...]
    """Variables as `$NAME`, substitutions as `$(...)`, and `*` for names of files."""


Value = Union[str, list[str], None]
"""Of a variable: a text, the items of an array, or not known."""


def unknown_of(text: str) -> tuple[str, ...]:
    return text.unknown if isinstance(text, Word) else ()


_VARIABLE = re.compile(r"\$(?:\{\w+\}|[A-Za-z_]\w*|[0-9@*])")


def emptied(word: str) -> str:
    """What a word is if the variables in it that are not known are empty, as most are that nothing sets."""
    return _VARIABLE.sub("", word) if unknown_of(word) else word


IN_PART = "..."
"""What is unknown of a text of which all may be there, or a part, or nothing: a filter or a branch decides."""


def made(texts: Sequence[str]) -> str:
    """Texts as one, which is not fully known where one of them is not."""
    unknown = [one for text in texts for one in unknown_of(text)]
    joined = "".join(texts)
    return Word(joined, unknown) if unknown else joined


def is_number(text: str) -> bool:
    """Is this a number as shells take it? `str.isdigit` is also true of signs that `int` does not take."""
    return text.isascii() and text.isdigit()


def joined(words: Sequence[str]) -> str:
    """Words as one line."""
    return made([part for word in words for part in (" ", word)][1:])


def is_exact(text: str) -> bool:
    """Is this precisely what the program is given? Names of files that a pattern stands for may differ."""
    return type(text) is str


def is_known(text: str) -> bool:
    """Is all of it on the line? A pattern for names of files is, and `{}` for those that `find` comes upon."""
    return type(text) is str or unknown_of(text) in (("*",), ("{}",))


def may_vanish(words: Iterable[str]) -> bool:
    """Do words depend on what a filter or a branch lets through? Then they may not be there, or only in part."""
    return any(type(word) is not str and IN_PART in unknown_of(word) for word in words)


def shortened(words: Sequence[str], any_of_them: bool = False) -> list[list[str]]:
    """What a command may be without words that may not be there: none of them, no option, or all but one or two.

    `any_of_them`: each word but the first is one, as in a line that is itself there in part.
    """
    doubtful = [at for at, word in enumerate(words) if (any_of_them and at) or may_vanish([word])][:_DOUBTFUL]
    options = [at for at in doubtful if words[at][:1] == "-"]
    without = [doubtful, options, *([at] for at in doubtful), *map(list, pairwise(doubtful))]
    rests = [[word for at, word in enumerate(words) if at not in gone] for gone in without if gone]
    return [rest for at, rest in enumerate(rests) if rest and rest not in rests[:at]]


_DOUBTFUL = 12
"""Words of one command that are left out one by one."""


class Expander:
    """Expands words with the variables of a line."""

    def __init__(
        self,
        variables: dict[str, Value],
        budget: Budget,
        output_of: Callable[[Substitution], Value],
        substitute: Callable[[str], object],
    ) -> None:
        self.variables, self.budget, self._output_of, self._substitute = variables, budget, output_of, substitute
        self.arguments: list[str] | None = None
        self.name = "sh"
        self.folder = ""
        self.references: set[str] = set()
        """Variables that may stand for others (`declare -n`), and those that they stand for: never known."""
        self.integers = {"SECONDS", "RANDOM", "LINENO", "HISTCMD", "OPTIND"}
        """Variables whose values are calculated when they are set: `declare -i`."""

    def fields(self, word: WordParts) -> list[str]:
        """The words that one word of the line becomes."""
        if isinstance(word, str):
            if "{" in word:
                return [self._globbed(self._at_home(text)) for text in multiplied(word, self.budget) if text]
            return [self._globbed(self._at_home(word))]
        if word and type(word[0]) is TextPart and not word[0].quoted and "~" in word[0].text:
            word = (TextPart(self._at_home(word[0].text, len(word) == 1), False), *word[1:])
        if any(type(part) is TextPart and not part.quoted and "{" in part.text for part in word):
            return self._multiplied(word)
        return self._joined(word)

    def text(self, parts: WordParts) -> str:
        """One text, not split at blanks: a value, the text of a document, the target of a redirection."""
        if isinstance(parts, str):
            return self._at_home(parts)
        if parts and type(parts[0]) is TextPart and not parts[0].quoted and parts[0].text[:1] == "~":
            parts = (TextPart(self._at_home(parts[0].text, len(parts) == 1), False), *parts[1:])
        if len(parts) == 1 and type(parts[0]) is TextPart:
            return parts[0].text
        pieces, unknown = [], list[str]()
        for part in parts:
            value = self._value(part)
            for item in value if isinstance(value, list) else (value,):
                unknown += unknown_of(item)
            pieces.append(self._between(part).join(value) if isinstance(value, list) else value)
        return self._made(pieces, unknown)

    def _at_home(self, text: str, whole: bool = True) -> str:
        """A word with the folder for `~`, if the line or its caller says which that is."""
        home = self.folder if text[:2] == "~+" else self.variables.get("HOME")
        if "~" not in text or type(home) is not str or not (found := _TILDE.match(text) or _TILDE_OF_VALUE.match(text)):
            return text
        if found.end() == len(text) and not whole:
            return text
        return (found[1] if found.re is _TILDE_OF_VALUE else "") + home + text[found.end() :]

    def _between(self, part: WordPart) -> str:
        """What stands between the items of `"$*"`."""
        if type(part) is not Variable or not (part.name == "*" or part.name.endswith("[*]")):
            return " "
        separators = self.variables.get("IFS", _DEFAULT_IFS)
        return separators[:1] if isinstance(separators, str) else " "

    def _split(self, text: str) -> list[str]:
        """A value that is not quoted is split at the characters of IFS."""
        separators = self.variables.get("IFS", _DEFAULT_IFS)
        if separators == _DEFAULT_IFS:
            return _BLANKS.split(text)
        if type(separators) is not str:
            return [Word(text, ("$IFS",))]
        return split_at(text, separators)

    def _globbed(self, text: str) -> str:
        return Word(text, ("*",)) if _GLOB.search(text) and text not in ("[", "[[") else text

    def _multiplied(self, word: Sequence[WordPart]) -> list[str]:
        """Braces in a word of parts: each part that is no plain text is held by one character meanwhile."""
        held: list[WordPart] = []
        template = ""
        for part in word:
            if type(part) is TextPart and not part.quoted:
                template += _HELD.sub("", part.text)
            elif len(held) < 6000:
                template += chr(_FIRST_HELD + len(held))
                held.append(part)
        fields: list[str] = []
        for text in multiplied(template, self.budget):
            pieces = filter(None, re.split("([\ue000-\uf8ff])", text))
            parts = [held[ord(one) - _FIRST_HELD] if _HELD.match(one) else TextPart(one, False) for one in pieces]
            words = self._joined(_named_longer(parts))
            fields += words if is_exact(text) else [Word(one, (*unknown_of(one), *unknown_of(text))) for one in words]
        return fields

    def _joined(self, word: Sequence[WordPart]) -> list[str]:
        """The fields of one word: a value that is not quoted is split at blanks."""
        fields: list[str] = []
        pieces: list[str] = []
        unknown: list[str] = []
        has_word = False
        for part in word:
            if type(part) is TextPart:
                pieces.append(part.text)
                has_word = has_word or part.quoted or bool(part.text)
                if not part.quoted and _GLOB.search(part.text):
                    unknown.append("*")
                continue
            value = self._value(part)
            quoted = getattr(part, "quoted", False)
            if isinstance(value, list):
                items: list[str] = value
                if quoted and type(part) is Variable and (part.name == "*" or part.name.endswith("[*]")):
                    items = [
                        self._made([self._between(part).join(value)], [u for one in value for u in unknown_of(one)])
                    ]
                    value = items[0]
                elif not quoted:
                    items = [field for one in value for field in (self._split(one) if type(one) is str else [one])]
            elif not quoted and unknown_of(value) == ("...",):  # a text that may be there in part
                items = [Word(one, ("...",)) for one in self._split(value)]
            elif quoted or unknown_of(value):
                items = [value]
            else:
                items = self._split(value)
                if _GLOB.search(value):
                    items = [self._globbed(item) for item in items]
            has_word = has_word or (quoted and not isinstance(value, list))
            for number, item in enumerate(items):
                if number and (has_word or pieces):
                    fields.append(self._made(pieces, unknown))
                    pieces, unknown, has_word = [], [], False
                if item:
                    has_word = True
                    pieces.append(item)
                    unknown += unknown_of(item)
        if has_word:
            fields.append(self._made(pieces, unknown))
        return fields

    def _made(self, pieces: Sequence[str], unknown: Sequence[str]) -> str:
        text = "".join(pieces)
        if len(text) > LONGEST:
            text, unknown = text[:LONGEST], [*unknown, "..."]
        return Word(text, unknown) if unknown else str(text)

    # --- values ---------------------------------------------------------------------------------

    def _value(self, part: WordPart) -> str | list[str]:
        if isinstance(part, TextPart):
            return part.text
        self.budget.spend()
        value: Value
        if isinstance(part, Variable):
            value = self.value_of(part)
        elif isinstance(part, Arithmetic):
            value = self.calculated(part.text)
        else:
            value = self._output_of(part)
            if value is None:
                return "" if part.sign == "quiet" else Word(part.source, ("$(...)",))
        return Word(part.source, (part.source[:80],)) if value is None else value

    def value_of(self, part: Variable) -> Value:
        """What a variable gives on this line, after its operator."""
        value = self._raw(part.name)
        how = part.operator
        if not how:
            if part.argument:  # `${a[$i]}`
                self._not_known(part)
            return None if part.argument else value
        if how[0] == "!":
            self._not_known(part)
            named = value if isinstance(value, str) and how == "!" else None
            if named and "[" in named:
                self.evaluate(named)
            return self._raw(named) if named else None
        if how in ("#", "#?") and not part.argument:
            return None if value is None or unknown_of(value if isinstance(value, str) else "") else str(len(value))
        if how in (":-", "-", ":=", "=", ":+", "+", ":?", "?"):
            return self._or_else(part, value, how)
        argument = self.text(part.argument)  # what runs in it counts, whatever the value is
        if how == ":":
            argument = ":".join(one if _NUMBER.fullmatch(one) else self._offset(one) for one in argument.split(":"))
        elif how == "@" and argument == "P":
            for one in value if isinstance(value, list) else (value or "",):
                self._substitute(one)
        if value is None or unknown_of(argument):
            return None
        if how == ":" and isinstance(value, list):
            return _slice(value if part.name.endswith("]") else [self.name, *value], argument)
        items = value if isinstance(value, list) else [value]
        if any(isinstance(one, Word) or len(one) > 256 for one in items):
            return None
        edited = [_edited(one, how, argument) for one in items]
        known = [one for one in edited if one is not None]
        return None if len(known) < len(edited) else known if isinstance(value, list) else known[0]

    def _offset(self, text: str) -> str:
        """A number of `${x:n:m}`, which is an expression."""
        value = self.calculated(text)
        return Word(text, ("$((...))",)) if value is None else value

    def _not_known(self, part: Variable) -> None:
        """Only running it would tell. What runs in its words counts."""
        self.text(part.argument)

    def _or_else(self, part: Variable, value: Value, how: str) -> Value:
        """`${x:-default}` and its kin. Of a variable that the line does not set, the default is the best guess."""
        if how[-1] == "?":
            self._not_known(part)
            return value
        doubtful = value is None or (isinstance(value, str) and bool(unknown_of(value)))
        empty = not value and (len(how) == 2 or isinstance(value, list))
        if how[-1] == "+":
            if not doubtful and empty:
                return ""
            default = self.text(part.argument)
            return Word(default, (IN_PART, f"${part.name}", *unknown_of(default))) if doubtful else default
        if value is not None and not empty:
            return value
        default = self.text(part.argument)
        if value is None:
            default = Word(default, (f"${part.name}", *unknown_of(default)))
        if how[-1] == "=":
            self.variables[part.name] = default
        return default

    def _raw(self, name: str) -> Value:
        if "[" in name:
            return self._item(name)
        if name in ("@", "*"):
            return self.arguments
        if is_number(name):
            at = int(name[:4])
            if at == 0:
                return self.name
            if self.arguments is None:
                return None
            return self.arguments[at - 1] if at <= len(self.arguments) else ""
        if name == "#":
            return None if self.arguments is None else str(len(self.arguments))
        if name == "PWD":
            return self.folder or None
        if name in self.references:
            return None
        value = self.variables.get(name)
        return (value[0] if value else "") if isinstance(value, list) else value

    def _item(self, name: str) -> Value:
        """`a[@]`, `a[1]`"""
        array, _, index = name[:-1].partition("[")
        number = None if index in ("@", "*") else self.calculated(index)
        value = None if array in self.references else self.variables.get(array)
        items = value if isinstance(value, list) else None if value is None else [value]
        if items is None or index in ("@", "*"):
            return items
        if number is None:
            return None
        at = int(number)
        if -len(items) <= at < len(items):
            return items[at]
        return None if any(map(unknown_of, items)) else ""

    def calculated(self, text: str) -> str | None:
        """The value of an expression, and what it sets is set. None if the line does not say it."""
        try:
            return str(calculate(_DOLLAR_NAME.sub(self._dollar_name, text), self._number_of, self._set_number))
        except (NotKnown, RecursionError):
            for name in _SET_IN_ARITHMETIC.findall(text):
                self.variables[name] = None
            self._substitute_in_values(text)
            return None

    def evaluate(self, text: str) -> str | None:
        """The value of an expression that was quoted before: what is substituted in it runs, too."""
        if "$(...)" not in unknown_of(text):
            self._substitute(text)
        return self.calculated(text)

    def _substitute_in_values(self, text: str) -> None:
        """Arithmetic takes the values of variables as expressions: `x='a[$(rm y)]'; echo $((x))` runs rm."""
        seen, waiting = set[str](), [text]
        while waiting and len(seen) < MANY:
            for name in set(_NAME_IN_ARITHMETIC.findall(waiting.pop())) - seen:
                seen.add(name)
                self.budget.spend()
                value = self._raw(name)
                for one in value if isinstance(value, list) else (value,):
                    if one is not None and "$(...)" not in unknown_of(one):
                        self._substitute(one)
                        waiting.append(one)

    def _dollar_name(self, found: re.Match[str]) -> str:
        value = self._raw(found[1])
        if type(value) is not str:
            raise NotKnown
        return value

    def _number_of(self, name: str) -> str | None:
        """A variable in arithmetic. One that is not on the line may be in the environment."""
        self.budget.spend()
        value = self._raw(name)
        return value if type(value) is str else None

    def _set_number(self, name: str, value: str) -> None:
        self.variables[name] = value


def _named_longer(parts: list[WordPart]) -> list[WordPart]:
    """Braces are multiplied before variables are read: in `{$x,y}z` there is a `$xz`."""
    longer: list[WordPart] = []
    for part in parts:
        last = longer[-1] if longer else None
        if type(part) is TextPart and not part.quoted and type(last) is Variable and last.source == f"${last.name}":
            found = _CONTINUES_NAME.match(part.text)
            if found and not last.name[0].isdigit() and _CONTINUES_NAME.match(last.name):
                longer[-1] = last._replace(name=last.name + found[0], source=last.source + found[0])
                part = TextPart(part.text[found.end() :], False)
                if not part.text:
                    continue
        longer.append(part)
    return longer


def split_at(text: str, separators: str) -> list[str]:
    """Split a value at the characters of IFS. An empty first or last piece says that it begins or ends with one."""
    if not separators:
        return [text]
    sign = f"[{re.escape(separators)}]"
    if re.search(rf"^{sign}|{sign}{sign}", text) and separators.strip(" \t\n"):
        return [Word(text, ("$IFS",))]  # blanks count once and other signs each: seldom enough to leave it
    return re.split(f"{sign}+", text)


def multiplied(text: str, budget: Budget) -> list[str]:
    """What `a{b,c}` and `{1..3}` become. Where that is too much, the words are not fully known."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop()
        budget.spend(1 + len(one) // 256)
        if len(done) + len(waiting) >= MANY:
            done.append(Word(one, _TOO_MANY) if "{" in one and "}" in one else one)
        elif (found := _outermost(one, budget)) is None:
            done.append(Word(one, _TOO_MANY) if "{" in one and _LONG_RANGE.search(one) else one)
        else:
            start, end, choices = found
            waiting += [one[:start] + choice + one[end:] for choice in reversed(choices)]
    return done


_TOO_MANY = ("{..}",)
"""What a word depends on whose braces stand for more words than are followed."""
_LONG_RANGE = re.compile(r"\{-?\d+\.\.-?\d+(?:\.\.-?\d+)?\}")
_LONGEST_RANGE = 80
"""Characters of `{1..3}`, the braces included."""


def _outermost(text: str, budget: Budget) -> tuple[int, int, list[str]] | None:
    """The first braces that mean something: where they begin and end, and their choices."""
    if "{" not in text or "}" not in text:
        return None
    budget.spend(1 + len(text) // 256 + text.count("{") // 2)
    opened: list[list[int]] = []  # where each open brace begins, and its commas
    closed: list[list[int]] = []
    for sign in _BRACE_SIGN.finditer(text):
        at = sign.start()
        if sign[0] == "{":
            opened.append([at])
        elif opened and sign[0] == ",":
            opened[-1].append(at)
        elif opened and sign[0] == "}":
            closed.append([*opened.pop(), at])
    for commas in sorted(closed):
        start, end = commas[0], commas[-1]
        if len(commas) > 2:
            return start, end + 1, [text[a + 1 : b] for a, b in pairwise(commas)]
        if end - start <= _LONGEST_RANGE and (choices := _range(text[start + 1 : end])) is not None:
            return start, end + 1, choices
    return None


def _range(inside: str) -> list[str] | None:
    found = _RANGE.fullmatch(inside)
    if found is None:
        return None
    numbers = [found[1], found[2]]
    try:
        first, last = (int(number) if is_number(number.lstrip("-")) else ord(number) for number in numbers)
    except ValueError:
        return None
    step = abs(int(found[3] or 1)) or 1
    if abs(last - first) // step >= MANY:
        return None
    values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if not is_number(numbers[0].lstrip("-")):
        return [chr(one) for one in values]
    padded = any(re.match(r"-?0[0-9]", number) for number in numbers)
    width = max(map(len, numbers)) if padded else 0
    return [f"{one:0{width}d}" for one in values]


def _edited(value: str, how: str, argument: str) -> str | None:
    """`${x#a}`, `${x%a}`, `${x/a/b}`, `${x:1:2}`, `${x^^}`"""
    if how in ("#", "##", "%", "%%"):
        return _trimmed(value, how, argument)
    if how in ("/", "//"):
        old, _, new = argument.partition("/")
        if _GLOB.search(old) or not old or (old[0] in "#%" and how == "/"):
            return _replaced_at_end(value, old, new) if len(old) > 1 and not _GLOB.search(old) else None
        return value.replace(old, new, -1 if how == "//" else 1)
    if how == ":":
        return _cut(value, argument)
    if how == "@":
        how, argument = argument, ""
    if argument:
        return None
    cases: dict[str, Callable[[str], str]] = {
        "^^": str.upper, ",,": str.lower, "^": lambda s: s[:1].upper() + s[1:], ",": lambda s: s[:1].lower() + s[1:],
        "U": str.upper, "L": str.lower, "u": lambda s: s[:1].upper() + s[1:], "E": lambda s: ANSI.sub(character, s),
    }  # fmt: skip
    return cases[how](value) if how in cases else None


def _replaced_at_end(value: str, old: str, new: str) -> str | None:
    """`${x/#old/new}`, `${x/%old/new}`"""
    if old[0] == "#":
        return new + value[len(old) - 1 :] if value.startswith(old[1:]) else value
    return value[: len(value) - len(old) + 1] + new if value.endswith(old[1:]) else value


def _trimmed(value: str, how: str, pattern: str) -> str | None:
    if "[" in pattern:
        return None
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    lengths = range(len(value) + 1) if len(how) == 1 else range(len(value), -1, -1)
    for length in lengths:
        part = value[:length] if how[0] == "#" else value[len(value) - length :]
        if expression.fullmatch(part):
            return value[length:] if how[0] == "#" else value[: len(value) - length]
    return value


def _slice(items: list[str], argument: str) -> list[str] | None:
    """`${a[@]:1:2}`. The first of the positional parameters is the name of the shell."""
    found = _OFFSETS.fullmatch(argument)
    if found is None or (found[2] or "0")[0] == "-":
        return None
    begin = int(found[1])
    begin = max(len(items) + begin, 0) if begin < 0 else begin
    return items[begin:] if found[2] is None else items[begin : begin + int(found[2])]


_OFFSETS = re.compile(r" ?(-?\d{1,6})(?::(-?\d{1,6}))?")


def _cut(value: str, argument: str) -> str | None:
    found = _OFFSETS.fullmatch(argument)
    if found is None:
        return None
    begin = int(found[1])
    begin = max(len(value) + begin, 0) if begin < 0 else begin
    if found[2] is None:
        return value[begin:]
    length = int(found[2])
    return value[begin : begin + length] if length >= 0 else value[begin:length]
