"""Turns the `[[hook]]` entries of one file into hooks, and collects all mistakes in them.

`Hook` and the runners check what an option means. Their errors are reported at the line of that option.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import FairleadError, HookUnavailable, MissingVariable, UnknownName, closest, nearest
from ..extras import MissingPackage, require
from ..hook import PHASES, Hook
from ..lifecycle import CONTROLS, EVENTS, iter_events
from ..runners.environment import (
    HookEnvironment,
    MissingProgram,
    lies_in,
    outside_path,
    resolve_program,
)
from ..runners.interpreters import script_of
from ..verdict import LOOSENING, POWERS
from .document import Document, Keys
from .hook_entry import (
    COMMON,
    FILTERS,
    FORMS,
    LATER,
    OF_FORM,
    OPTIONS,
    OUTCOMES,
    RAW,
    SHAPES,
    ConfiguredHook,
    HookOrigin,
    TrustedCopies,
    value_of,
)
from .programs import PinnedRunner, Unavailable
from .restricted import PROJECT_MAY, RestrictedHook
from .survey import path_spans
from .survey_budget import GLOB, glob_files


def read_hooks(document: Document, origin: HookOrigin, defaults: Mapping[str, Any]) -> list[ConfiguredHook]:
    """Make the hooks of a file, except those with mistakes."""
    entries = document.data.get("hook", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        document.wrong(("hook",), "hooks are written as [[hook]] tables")
        return []
    found: list[ConfiguredHook] = []
    names: set[str] = set()
    for index, entry in enumerate(entries):
        reader = _HookReader(document, ("hook", index), entry, origin, defaults)
        name = entry.get("name")
        if isinstance(name, str) and name in names:
            reader.wrong(f"a hook named {name!r} is already in this file; give each its own name", "name")
        if isinstance(name, str):
            names.add(name)
        configured = reader.read()
        if configured is not None:
            found.append(configured)
        if document.hopeless:
            break
    return found


class _HookReader:
    """Reads one `[[hook]]` entry and makes its hook."""

    def __init__(
        self, document: Document, keys: Keys, entry: dict[str, Any], origin: HookOrigin, defaults: Mapping[str, Any]
    ) -> None:
        self._document = document
        self._keys = keys
        self._written = entry
        self._entry = dict(entry)  # without what turns out to be wrong
        self._origin = origin
        self._defaults = defaults
        self._sound = True
        self._missing_at: Keys | None = None  # where what the hook lacks is named

    def wrong(self, problem: str, *keys: str | int, value: bool = True) -> None:
        """Note a mistake at a value, or at its key, or at the entry as a whole."""
        self._sound = False
        self._document.wrong((*self._keys, *keys), problem, value=value and bool(keys))

    @contextmanager
    def _at(self, *keys: str | int) -> Iterator[None]:
        """Report errors within this block at these keys."""
        try:
            yield
        except (FairleadError, ValueError, TypeError) as error:
            if isinstance(error, HookUnavailable):  # it is no mistake in the file: this hook fails, and no other
                self._missing_at = self._missing_at or (*self._keys, *keys)
                raise
            prefix = f"hook {self._entry.get('name')!r}: "
            self.wrong(str(error).removeprefix(prefix), *keys)

    def read(self) -> ConfiguredHook | None:
        """The hook, if the entry is sound. If it is not, all that can be checked still is."""
        form = self._form()
        self._check_keys(form)
        self._check_name()
        name = self._entry.setdefault("name", "unnamed")
        events = self._events()
        options = self._options(events)
        runner = None if form is None else self._runner(form, events, options)
        if runner is None or form is None or not self._sound:
            return None
        hook: Hook | None = None
        with self._at("name"):
            hook = Hook(
                runner, self._entry["on"], name=name, layer=self._origin.layer, version=self._version(),
                locked=self._entry.get("locked", False), **options,
            )  # fmt: skip
        if hook is None:
            return None
        line = self._document.line_of(self._keys)
        locked = self._entry.get("locked", False)
        return ConfiguredHook(hook, form, self._entry, str(self._origin.path), line, name, locked)

    def _version(self) -> str:
        """A digest of what the hook does: its entry, and the files of the project that it names."""
        paths = self._origin.copies.paths.values() if self._origin.copies is not None else ()
        copies = sorted(Path(copy).parent.name for copy in paths)
        return sha256(msgspec.json.encode([self._written, copies], enc_hook=str)).hexdigest()[:16]

    # --- keys -------------------------------------------------------------------------------

    def _check_name(self) -> None:
        name = self._entry.get("name")
        if "name" not in self._written:
            self.wrong("a hook needs a name")
        elif isinstance(name, str) and not (name and name.isprintable() and len(name) <= 100):
            self.wrong("a name must be a non-empty text of printable characters, 100 at most", "name")
            del self._entry["name"]
        elif isinstance(name, str) and name.startswith("fairlead."):
            self.wrong("names that begin with fairlead. are fairlead's own", "name")

    def _form(self) -> str | None:
        forms = [key for key in self._entry if key in FORMS]
        for form in forms:
            if form in LATER:
                self.wrong(f"{form} is not available in this version of fairlead", form)
        if len(forms) > 1:
            self.wrong(f"a hook runs one way, and here are two: {forms[0]} and {forms[1]}", forms[1])
        if not forms:
            likely = next((key for key in self._entry if key not in COMMON and closest(key, FORMS, 0.7)), None)
            if likely is None:
                self.wrong(f"how does it run? Add one of {', '.join(f for f in FORMS if f not in LATER)}")
            else:
                self.wrong(f"unknown key {likely!r}{nearest(likely, FORMS)}", likely, value=False)
            return None
        return forms[0]

    def _check_keys(self, form: str | None) -> None:
        valid = (*COMMON, *FORMS, *OF_FORM.get(form or "", ()))
        every = {key for keys in OF_FORM.values() for key in keys}
        for key, value in list(self._entry.items()):
            if key not in valid and (form is not None or (key not in every and not closest(key, FORMS, 0.7))):
                other = f"a {form} hook takes no {key!r}" if key in every else f"unknown key {key!r}"
                self.wrong(f"{other}{nearest(key, valid)}", key, value=False)
            elif key in SHAPES:
                self._check_shape(key, value)

    def _check_shape(self, key: str, value: Any) -> None:
        kinds, described = SHAPES[key]
        fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        if fits and key == "timeout" and value is True:
            fits = False
        if fits and isinstance(value, list) and key in ("on", "command", "worker", "may", "env", "fields"):
            fits = all(isinstance(item, str) for item in value) and (bool(value) or key in ("may", "env", "fields"))
        if not fits:
            self.wrong(f"{key} must be {described}", key)
            del self._entry[key]

    def _events(self) -> list[str]:
        if "on" not in self._entry:
            if "on" not in self._written:
                self.wrong('when does it run? Add on = "before_tool", or another event; see `fairlead events`')
            return []
        on = self._entry["on"]
        found: list[str] = []
        for i, name in enumerate([on] if isinstance(on, str) else on):
            with self._at("on", *([i] if isinstance(on, list) else [])):
                if name == "*" and isinstance(on, list):
                    raise UnknownName("event", name, EVENTS)
                found += [event.name for event in iter_events(name)]
        return found

    def _options(self, events: list[str]) -> dict[str, Any]:
        """The options of the hook, each checked by itself, so that a mistake is shown in its place."""
        settings = {key: self._defaults[key] for key in ("timeout", "on_failure", "enforce") if key in self._defaults}
        if self._entry.get("phase") == "observe":
            settings.pop("on_failure", None)
        settings |= {key: self._entry[key] for key in OPTIONS if key in self._entry}
        if "timeout" in settings:
            settings["timeout"] = None if settings["timeout"] is False else settings["timeout"]
        if "quarantine" in settings:
            settings["quarantine"] = tuple(settings["quarantine"])
        on: Any = "*" if not events or self._entry["on"] == "*" else events
        phase = {"phase": settings["phase"]} if settings.get("phase") in PHASES else {}
        for key, value in settings.items():
            with self._at(*([key] if key in self._entry else [])):
                Hook(_probe, on, name=self._entry["name"], **(phase | {key: value}))
        filters: dict[str, Any] = self._entry.get("match", {})
        for key, value in filters.items():
            with self._at("match", key):
                if key not in FILTERS:
                    raise UnknownName("filter", key, FILTERS)
                if isinstance(value, dict):
                    raise ValueError(f"{key} is a name or a list of names")
                Hook(_probe, on, name=self._entry["name"], **{key: value})
        if self._entry.get("locked") and self._origin.layer == "project":
            self.wrong("a project cannot lock its hooks", "locked")
        if (
            settings.get("on_failure") == "abort"
            and self._origin.layer == "project"
            and "abort" not in self._entry.get("may", ())
        ):
            self.wrong('a project\'s hook may abort only with may = ["abort"]', "on_failure")
        for i, word in enumerate(self._entry.get("may", ())):
            with self._at("may", i):
                self._check_power(word)
        return settings | filters

    def _check_power(self, word: str) -> None:
        if word == RAW and "raw" in OF_FORM.get(self._form_named, ()):
            if self._origin.layer != "project":
                raise ValueError('only a project\'s hook needs "raw" in may; here, raw = true is enough')
            return
        if word not in POWERS:
            raise UnknownName("power", word, POWERS, " in may")
        if self._origin.layer == "project" and word in LOOSENING:
            raise UnknownName("power", word, (p for p in POWERS if p not in LOOSENING), " of a project's hook")

    @property
    def _form_named(self) -> str:
        return next((form for form in FORMS if form in self._entry), "")

    @property
    def _powers(self) -> list[str] | None:
        """What the hook may do; None is everything."""
        may = self._entry.get("may") and [word for word in self._entry["may"] if word != RAW]
        return [*PROJECT_MAY, *(may or ())] if self._origin.layer == "project" else may

    def _may(self, word: str) -> None:
        powers = self._powers
        if powers is not None and word not in powers and word != "proceed":
            never = self._origin.layer == "project" and word in LOOSENING
            way_out = (
                "a project's hook never may" if never else f"add it to may = [...]; so far it may {', '.join(powers)}"
            )
            raise ValueError(f"this hook may not {word}: {way_out}")

    # --- runners ----------------------------------------------------------------------------

    def _runner(self, form: str, events: list[str], options: dict[str, Any]) -> Callable[..., Any] | None:
        make: dict[str, Callable[..., Any]] = {
            "python": self._python, "command": self._command, "shell": self._shell, "worker": self._worker,
            "url": self._url, "rule": self._rule, "prompt": self._prompt,
        }  # fmt: skip
        runner: Callable[..., Any] | None = None
        if form not in self._entry or form in LATER:
            return None  # its mistake has been noted
        copies = self._origin.copies
        try:
            with self._at(form):
                runner = make[form](self._entry[form], events, options)
        except HookUnavailable as error:
            problem = str(error)
            if copies is not None and not isinstance(error, (MissingPackage, MissingVariable)):
                problem += f"; put it back, or look at the project with `fairlead trust` in {copies.root}"
            mistake = self._document.mistake_at(self._missing_at or self._keys, problem, value=True)
            runner = Unavailable(mistake, error)
            if not self._sound:
                self.wrong(str(error), *(self._missing_at or ())[len(self._keys) :])
        if runner is None:
            return None
        if copies is not None:
            runner = self._pinned_runner(runner, form, copies)
        may = None if form == "prompt" and self._origin.layer != "project" else self._powers  # which it keeps to itself
        never = LOOSENING if self._origin.layer == "project" else ()
        return runner if may is None or options.get("phase") == "observe" else RestrictedHook(runner, may, never)

    def _command(self, argv: list[str], events: list[str], options: dict[str, Any]) -> Any:
        from ..runners.command import Command

        self._check_script(argv)
        return Command(self._pinned(argv), workspace=self._outside, **self._command_options(events, options))

    def _shell(self, line: str, events: list[str], options: dict[str, Any]) -> Any:
        from ..runners.command import Command

        return Command.shell(line, **self._command_options(events, options))

    def _check_script(self, argv: list[str]) -> None:
        """Refuse a script in the agent's workspace, where the agent can change it."""
        script = script_of(argv)
        if script and self._outside is not None and lies_in(self._origin.folder / script, self._outside):
            raise ValueError(f"{script!r} lies in the agent's workspace, where the agent can change it")

    def _command_options(self, events: list[str], options: dict[str, Any]) -> dict[str, Any]:
        from ..runners.command import OUTPUTS

        exits: dict[int, str] = {}
        for code, control in self._entry.get("exit", {}).items():
            with self._at("exit", code):
                if not code.isdigit() or int(code) > 255:
                    raise ValueError(f"an exit code is a number from 0 to 255, not {code!r}")
                if control not in (*CONTROLS, "veto"):
                    raise UnknownName("control", control, (*CONTROLS, "veto"))
                for event in events:
                    self._check_control(control, event)
                exits[int(code)] = control
        settings = {"output": self._entry["output"]} if "output" in self._entry else {}
        if "output" in settings and settings["output"] not in OUTPUTS:
            with self._at("output"):
                raise UnknownName("output", settings.pop("output"), OUTPUTS)
        self._check_output(options)
        return {"environment": self._environment(), "exits": exits, **settings}

    def _check_output(self, options: dict[str, Any]) -> None:
        """Refuse output as context if the hook may not inject it, unless it only observes."""
        if self._entry.get("output") == "context" and options.get("phase") != "observe":
            with self._at("output"):
                self._may("inject")

    def _check_control(self, control: str, event: str) -> None:
        meant = EVENTS[event].veto if control == "veto" else control
        if meant is None:
            raise ValueError(f"{event} has nothing to veto")
        if meant not in EVENTS[event].controls:
            raise ValueError(f"{event} does not take {meant!r}{nearest('', EVENTS[event].controls)}")
        self._may(meant)

    def _worker(self, argv: list[str], *_: Any) -> Any:
        from ..runners.worker import Worker

        self._check_script(argv)
        return Worker(self._pinned(argv), environment=self._environment(), workspace=self._outside)

    def _python(self, target: str, *_: Any) -> Any:
        """A Python hook runs in a worker of its own, never inside the host."""
        from ..runners.worker import Worker

        module, colon, function = target.rpartition(":")
        if not colon or not module or not function.isidentifier():
            raise ValueError('python names a function: "module:function", or "path/to/file.py:function"')
        if "\0" in target:
            raise ValueError("no name holds a NUL")
        if module.endswith(".py"):
            file = (self._origin.folder / module).absolute()
            if self._copy_of(module) is None and not os.path.isfile(file):
                raise MissingProgram(f"{module!r} is not in {self._origin.folder}", str(file))
            if self._outside is not None and lies_in(file, self._outside):
                raise ValueError(f"{module!r} lies in the agent's workspace, where the agent can change it")
            module = self._copy_of(module) or str(file)
        elif not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(f"{module!r} is not the name of a module")
        launch = [sys.executable]
        if "interpreter" in self._entry:
            with self._at("interpreter"):
                first, *rest = self._program(self._entry["interpreter"])
                launch = [resolve_program(first, self._environment(), self._outside), *rest]
        argv = [*launch, "-P", "-m", "fairlead.worker", f"{module}:{function}"]
        if not module.endswith(".py") and self._importable():
            argv.append(str(self._origin.folder))
        return Worker(argv, environment=self._environment(), workspace=self._outside) if self._sound else None

    def _importable(self) -> bool:
        """Whether modules beside the file may be imported: not where the agent could have put them."""
        outside = self._outside
        return outside is None or not self._origin.folder.resolve().is_relative_to(Path(outside).resolve())

    def _url(self, url: str, events: list[str], options: dict[str, Any]) -> Any:
        from ..runners.http import Url, check_header

        require("aiohttp", "http", "hooks with a url")
        headers: dict[str, str] = {}
        for name, value in self._entry.get("headers", {}).items():
            with self._at("headers", name):
                headers[name] = self._value(value)
                check_header(name, headers[name])
        secret: str | None = None
        if "secret" in self._entry:
            with self._at("secret"):
                secret = self._value(self._entry["secret"]) or None
                if secret is None:
                    raise ValueError("the secret is empty")
        sound = headers if self._sound else {}
        return Url(
            url, headers=sound, secret=secret, layer=self._origin.layer, allow_hosts=self._origin.allow_hosts,
            **self._outbound(events, options),
        )  # fmt: skip

    def _outbound(self, events: list[str], options: dict[str, Any]) -> dict[str, Any]:
        """What a service or a model is sent: steps as they are, or redacted but for the fields that are judged."""
        from ..runners.outbound import check_fields

        raw, fields = self._entry.get("raw", False), self._entry.get("fields", [])
        if raw and self._origin.layer == "project" and RAW not in self._entry.get("may", ()):
            with self._at("raw"):
                raise ValueError('a project\'s hook is sent steps as they are only with may = ["raw"]')
        if "fields" in self._entry and options.get("phase") == "observe":
            with self._at("fields"):
                raise ValueError("an observer judges nothing, so it takes no fields")
        for i, name in enumerate(fields if events else ()):
            with self._at("fields", i):
                check_fields([name], events)
        return {"raw": raw, "fields": fields} if self._sound else {}

    def _rule(self, expression: str, events: list[str], options: dict[str, Any]) -> Any:
        from ..runners.rule import Rule

        require("cel", "rules", "rules")
        outcomes = {key: self._entry[key] for key in OUTCOMES if key in self._entry}
        if "change" in outcomes and options.get("phase", "transform") != "transform":
            with self._at("change"):
                raise ValueError('a gate only judges; use phase = "transform" to change something')
        if not events:
            return None  # of what, then?
        for word, what in outcomes.items():
            with self._at(word):  # by itself first, so that a bad message is shown where it stands
                self._may(word)
                Rule("true", on=events, tried=False, **{word: what})
        return Rule(
            expression,
            on=events,
            tried=self._origin.trusted,
            **(outcomes if self._sound or not outcomes else {"warn": ""}),
        )

    def _prompt(self, prompt: str, events: list[str], options: dict[str, Any]) -> Any:
        from ..runners.prompt import MAY, Prompt

        require("pydantic_ai", "prompt", "hooks with a prompt")
        if "model" not in self._entry:
            raise ValueError('which model? Add model = "provider:name"')
        settings: dict[str, Any] = {key: self._entry[key] for key in ("output", "template") if key in self._entry}
        for key in ("output", "template"):
            if key in settings:
                with self._at(key):  # by itself first, too
                    Prompt("", model="", **{key: settings[key]})
        if self._origin.layer == "project":  # elsewhere, `may` limits a prompt's verdicts only
            self._check_output(options)
        settings |= self._outbound(events, options)
        if not self._sound:
            return None
        may = [word for word in self._entry.get("may", ()) if word != RAW]
        return Prompt(prompt, model=self._entry["model"], may=(*MAY, *may), **settings)

    @property
    def _outside(self) -> Path | None:
        """Where a program may not lie: a project's own files are pinned instead."""
        return None if self._origin.layer == "project" else self._origin.workspace

    def _pinned(self, argv: list[str]) -> list[str]:
        """The words of a command, with the copies of what was trusted in place of a project's files."""
        return [*self._program(argv[0]), *map(self._with_copies, argv[1:])]

    def _program(self, program: str) -> list[str]:
        """The words that start a program: just the one that was looked at when the project was trusted."""
        copies = self._origin.copies
        words = copies.launch.get(program, [program]) if copies is not None else [program]
        return [self._copy_of(word) or word for word in words]

    def _pinned_runner(self, runner: Any, form: str, copies: TrustedCopies) -> Any:
        """The runner, which first looks whether all that it uses is as it was trusted."""
        words = self._entry[form][1:] if form in ("command", "worker") else []
        root, pins, absent = copies.root, copies.outside.get(self._entry["name"], []), self._absent(words)
        patterns = [word for word in words if GLOB.search(word)]
        known = {pin.path for pin in pins}

        def appears() -> Iterator[Path]:
            return (root / path for word in patterns for path in glob_files(word, root) if path not in known)

        placed = [pin if os.path.isabs(pin.path) else replace(pin, path=str(root / pin.path)) for pin in pins]
        needed = pins or absent or patterns
        return PinnedRunner(runner, placed, absent, root, appears if patterns else tuple) if needed else runner

    def _absent(self, words: list[str]) -> list[Path]:
        """Paths that a trusted command names, and that were not there when it was trusted."""
        named = {word[start:end] for word in words for start, end in path_spans(word, _may_be_a_file, all_parts=True)}
        paths = {Path(os.path.normpath(self._origin.folder / part)) for part in named if self._copy_of(part) is None}
        root = self._origin.folder
        return sorted(path for path in paths if path.is_relative_to(root) and path != root)

    def _copy_of(self, path: str) -> str | None:
        copies = self._origin.copies
        return None if copies is None else copies.paths.get(os.path.normpath(self._origin.folder / path))

    def _with_copies(self, word: str) -> str:
        """A word with each path in it replaced by its copy: `rules.txt`, `--rules=rules.txt`, `-crules.txt`, `a,b`."""
        for start, end in reversed(path_spans(word, lambda part: self._copy_of(part) is not None)):
            path = word[start:end]
            slashes = path[len(path.rstrip("/")) :]  # of a folder: `"$1"*` means its files
            word = word[:start] + str(self._copy_of(path)) + slashes + word[end:]
        return word

    def _value(self, value: Any) -> str:
        return value_of(value, self._origin.environ)

    def _environment(self) -> HookEnvironment:
        env = self._entry.get("env", [])
        values: dict[str, str] = {}
        for i, name in enumerate(env):
            with self._at("env", name if isinstance(env, dict) else i):
                if not name or "=" in name or "\0" in name:
                    raise ValueError(f"{name!r} is not the name of a variable")
                if isinstance(env, dict):
                    values[name] = self._value(env[name])
                    if "\0" in values[name]:
                        raise ValueError("no variable holds a NUL")
        environment = self._origin.environment([] if isinstance(env, dict) else env)
        if "PATH" in values and self._origin.layer != "project":
            values["PATH"] = outside_path(values["PATH"], self._origin.workspace)
        return replace(environment, env=environment.env | values)


def _may_be_a_file(part: str) -> bool:
    """Whether a part of a word could be the name of a file, and is no number, option or pattern."""
    return "\0" not in part and part[:1] != "-" and not re.fullmatch(r"[\d.]+", part) and not GLOB.search(part)


def _probe(step: Any) -> None:
    """Stands in for a runner while options are checked."""
