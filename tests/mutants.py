"""Mutation testing: change one thing in the engine, and see whether a test notices.

`make mutants` runs this over the modules that decide what a hook means. Each mutant is one small edit (a comparison
turned round, a constant off by one, a statement left out). It runs in a forked process until the first test fails. A
mutant that no test notices has survived: either a test is missing, or the edit changes nothing that anyone can
observe. Then `mutants.toml` says why.

The tests are collected and recorded once. A mutant in a function takes the place of that function's code in its own
process, and only tests that reach the changed statement run: first those that noticed other mutants, then the
quickest. A mutant outside of functions needs its module made anew, and so a collection of its own.

(The libraries for this leave out decorated functions. Here these are the engine's loop and most of a decision.)
"""

from __future__ import annotations

import argparse
import ast
import copy
import faulthandler
import gc
import os
import pickle
import random
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.machinery import SourceFileLoader
from inspect import CO_ITERABLE_COROUTINE, CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "fairlead"
ENGINE = """
engine conformance test_approvals.py test_registration.py test_sessions.py test_testing.py test_tools.py
wire/test_record.py config/test_layers.py
"""
LOOP = "hosts/test_turns.py hosts/loop/test_loop.py hosts/loop/test_loop_corners.py hosts/loop/test_loop_seeds.py"
VERDICTS = """
engine/test_properties.py test_verdict.py test_verdict_table.py test_encode_verdict.py test_may.py test_lifecycle.py
test_tools.py wire engine conformance
"""
FRAMEWORKS = f"{LOOP} hosts/test_tool_calls.py hosts/loop/test_loop_cancellation.py hosts/frameworks"
TESTS = {
    "engine/loop.py": ENGINE,
    "engine/run.py": ENGINE,
    "engine/chain.py": ENGINE,
    "engine/dispatch.py": ENGINE,
    "session.py": f"test_sessions.py {ENGINE} {LOOP}",
    "verdict.py": VERDICTS,
    "hosts/frameworks/turn.py": FRAMEWORKS,
    "hosts/frameworks/tool_call.py": FRAMEWORKS,
}
"""The mutated modules, and the tests that should notice, the likeliest first. Those that do not reach a statement are
not run for it."""
MEASURING = (
    "test_ten_thousand_dispatches_that_hang_time_out_together_none_early",
    "test_only_matching_hooks_are_looked_at",
    "test_dispatching_leaves_memory_flat",
)
"""Left out of `engine/test_concurrency.py`: they measure time and memory, and may fail on a busy machine."""

REASONS: dict[str, dict[str, str]] = {
    module: {edit: reason for reason, edits in reasons.items() for edit in edits}
    for module, reasons in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""Edits that no test can observe, and why: they are not run. By module; as "function: before -> after"."""

PYTEST = (
    "-qq", "-m", "not soak", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=native", "--timeout=0",
    *(f"--deselect=tests/engine/test_concurrency.py::{name}" for name in MEASURING),
)  # fmt: skip
LIMIT = 5.0
"""Seconds, beyond ten times what it takes unchanged, after which a test that hangs has noticed its mutant."""
ALONE = 60.0
"""The same, where it is not known what a test takes unchanged."""


Place = tuple[ast.AST, str, int | None]
"""A node's parent, its field there, and the index in that field."""
Key = tuple[str, int, int]
"""A statement or a lambda: its module, line and column."""


class Mutant(NamedTuple):
    """One edit of one module."""

    module: str
    number: int
    line: int
    function: str
    before: str
    after: str
    within: Key | None  # None outside of functions
    compile: Callable[[], CodeType]

    @property
    def edit(self) -> str:
        return f"{self.function}: {self.before} -> {self.after}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.edit}"


# --- edits --------------------------------------------------------------------------------------

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add}


def edits_of(node: ast.AST) -> Iterator[ast.AST]:
    """What a node could be instead."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield _with(node, ops=[COMPARISONS[type(op)]()])
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield copy.copy(node.operand)
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not isinstance(node.left, (ast.JoinedStr, ast.Constant)):
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
            yield _with(node, test=ast.Constant(False))
            if not isinstance(node, ast.While):
                yield _with(node, test=ast.Constant(True))
        case ast.Return(value=ast.expr()) if not _is_falsy(node.value):
            yield _with(node, value=ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute()]):
            yield ast.Pass()


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _is_falsy(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every edit of a module."""
    tree = tree_of(module)
    number = 0
    for place, within, function in _places(tree, None, ""):
        old = _at(*place)
        for new in edits_of(old):
            ast.fix_missing_locations(ast.copy_location(new, old))
            number += 1
            before = _text(place)
            _put(*place, new)
            after = _text(place)
            _put(*place, old)
            yield Mutant(
                module,
                number,
                getattr(old, "lineno", 0),
                function,
                before,
                after,
                None if within is None else key_of(module, within),
                partial(_compile_with, module, tree, place, new),
            )


def tree_of(module: str) -> ast.Module:
    return ast.parse((SOURCES / module).read_text("utf-8"))


@cache
def code_of(module: str) -> CodeType:
    return _compile(module, tree_of(module))


def _compile(module: str, tree: ast.Module) -> CodeType:
    return compile(tree, str(SOURCES / module), "exec", dont_inherit=True)


def _compile_with(module: str, tree: ast.Module, place: Place, new: ast.AST) -> CodeType:
    old = _at(*place)
    _put(*place, new)
    try:
        return _compile(module, tree)
    finally:
        _put(*place, old)


def key_of(module: str, node: Any) -> Key:
    return module, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _places(node: ast.AST, within: ast.AST | None, function: str) -> Iterator[tuple[Place, ast.AST | None, str]]:
    """Where a node stands in its parent, for all nodes that run: no annotations, no docstrings, no imports of types.

    With it, the innermost statement or lambda in a function, and the name of the function.
    """
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}".lstrip(".")
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_type_checking(child):
                continue
            is_statement = isinstance(child, ast.stmt) and (within is not None or is_function)
            inner = child if is_statement or isinstance(child, ast.Lambda) else within
            yield (node, field, index), inner, function
            yield from _places(child, inner, function)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _at(node: ast.AST, field: str, index: int | None) -> Any:
    value = getattr(node, field)
    return value if index is None else value[index]


def _put(node: ast.AST, field: str, index: int | None, new: ast.AST) -> None:
    if index is None:
        setattr(node, field, new)
    else:
        getattr(node, field)[index] = new


def _text(place: Place) -> str:
    """A node in one line: of a compound statement only its head, and a constant with what it is part of."""
    parent, _, index = place
    node = _at(*place)
    if isinstance(node, (ast.If, ast.While)):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    if isinstance(node, ast.Constant) and isinstance(parent, ast.Dict) and index is not None:
        return f"{ast.unparse(parent.keys[index] or node)}: {ast.unparse(node)}"
    if isinstance(node, ast.Constant) and isinstance(parent, (ast.expr, ast.keyword, ast.AnnAssign, ast.Assign)):
        node = parent
    return " ".join(ast.unparse(node).split())


# --- code ---------------------------------------------------------------------------------------

SEEN: set[Key] = set()
"""The statements and lambdas that ran since this was emptied."""


class Noting(ast.NodeTransformer):
    """Has each statement and each lambda in a function note that it runs."""

    def __init__(self, module: str) -> None:
        self.module, self.depth = module, 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        self.depth += is_function
        super().generic_visit(node)
        if self.depth:
            for field in ("body", "orelse", "finalbody"):
                if isinstance(statements := getattr(node, field, None), list):
                    setattr(node, field, [new for one in statements for new in (ast.Expr(self.note(one)), one)])
        if isinstance(node, ast.Lambda):
            node.body = ast.BoolOp(ast.Or(), [self.note(node), node.body])
        self.depth -= is_function
        return node

    def note(self, node: ast.AST) -> ast.expr:
        return ast.parse(
            f"__import__('sys').modules['__main__'].SEEN.add({key_of(self.module, node)})", mode="eval"
        ).body


def functions_in(code: CodeType) -> list[CodeType]:
    """All code of functions in a module's code."""
    inner = [code for one in _codes_in(code) for code in functions_in(one)]
    return [*([code] if code.co_flags & CO_OPTIMIZED else []), *inner]


def changed_code(old: CodeType, new: CodeType) -> list[CodeType]:
    """The new code that differs, from the module down to the innermost function."""
    if old == new:
        return []
    inner = zip(_codes_in(old), _codes_in(new), strict=False)
    return [new, *next((found for a, b in inner if (found := changed_code(a, b))), [])]


def _codes_in(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


Name = tuple[str, int, str]
"""Which function this is: its file, first line and name."""


def functions() -> dict[Name, list[FunctionType]]:
    """The functions of the modules."""
    found: dict[Name, list[FunctionType]] = {}
    paths = {str(SOURCES / module) for module in TESTS}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename in paths:
            found.setdefault(name_of(one.__code__), []).append(one)
    return found


def name_of(code: CodeType) -> Name:
    return code.co_filename, code.co_firstlineno, code.co_name


def put(codes: list[CodeType], found: dict[Name, list[FunctionType]]) -> None:
    """Give every function that has one of these codes the new one."""
    for code in codes:
        for function in found.get(name_of(code), ()):
            flags = function.__code__.co_flags & CO_ITERABLE_COROUTINE  # set by `types.coroutine`
            function.__code__ = code.replace(co_flags=code.co_flags | flags)


# --- running ------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """What one run of all tests showed: how long each took, and which tests reach which statements."""

    durations: dict[str, float]
    reaching: dict[Key, list[str]]
    failed: str | None


class Started(NamedTuple):
    """A process that runs tests on a mutant, when it has to be done, and where it says which test failed."""

    mutant: Mutant
    deadline: float
    failed: int


class Mutation:
    """A plugin of pytest: instead of the tests, it runs the mutants of some modules."""

    def __init__(self, mutants: list[Mutant], options: argparse.Namespace) -> None:
        self.mutants, self.options = mutants, options
        self.survivors: list[Mutant] = []
        self.sink = os.open(os.devnull, os.O_WRONLY)
        self.recorded = Recorded({}, {}, None)
        self.noticed: Counter[str] = Counter()  # mutants, by the test that failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config.pluginmanager.unregister(name="terminalreporter")
        self.items = {item.nodeid: item for item in session.items}
        self.functions = functions()
        gc.collect()
        gc.freeze()  # processes share what no collection touches
        began = time.monotonic()
        self.recorded = self.record()
        print(f"{len(self.items)} tests, {time.monotonic() - began:.0f} s", flush=True)
        self.survivors = self.run_all()
        return True

    def record(self) -> Recorded:
        """Run all tests as they are, in a process of their own, and see what they reach."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _apart()
            with open(write, "wb") as pipe:
                pipe.write(pickle.dumps(self._record()))
                pipe.flush()
                os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            recorded: Recorded = pickle.load(pipe)
        os.waitpid(pid, 0)
        if recorded.failed is not None:
            print(f"{recorded.failed} fails as it is: mend that first", flush=True)
            pytest.exit(returncode=1)
        return recorded

    def _record(self) -> Recorded:
        for module in {mutant.module: None for mutant in self.mutants}:
            noting = ast.fix_missing_locations(Noting(module).visit(tree_of(module)))
            put(functions_in(_compile(module, noting)), self.functions)
        recorded = Recorded({}, {}, None)
        began = time.monotonic()
        for name, failed in self.run_items(list(self.items)):
            if failed:
                return recorded._replace(failed=name)
            recorded.durations[name] = time.monotonic() - began
            for key in SEEN:
                recorded.reaching.setdefault(key, []).append(name)
            SEEN.clear()
            began = time.monotonic()
        return recorded

    def run_items(self, names: list[str]) -> Iterator[tuple[str, bool]]:
        """Run tests, and say of each whether it failed."""
        for name, following in zip(names, [*names[1:], None], strict=True):
            item = self.items[name]
            limit = LIMIT + 10 * self.recorded.durations.get(name, 10.0)
            faulthandler.dump_traceback_later(limit, exit=True, file=self.sink)  # an exception might be swallowed
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following and self.items[following])
            yield name, bool(item.session.testsfailed)

    def start(self, mutant: Mutant) -> tuple[int, Started] | None:
        """Fork a process that runs the tests of a mutant. Gives its id; None if no test can notice."""
        codes = changed_code(code_of(mutant.module), mutant.compile())
        if not codes:  # the compiler makes the same of both
            return None
        names = sorted(self.recorded.reaching.get(mutant.within, ()), key=self.rank) if mutant.within else []
        names = names[: self.options.tests]
        if mutant.within and not names:
            return None
        read, write = os.pipe()
        if pid := os.fork():
            os.close(write)
            took = sum(map(self.recorded.durations.__getitem__, names if mutant.within else self.items))
            return pid, Started(mutant, time.monotonic() + 4 * LIMIT + 10 * took, read)
        _apart()
        if mutant.within is None:  # everything imports the module: a new interpreter has to
            os.execv(sys.executable, [sys.executable, __file__, "--alone", mutant.module, str(mutant.number)])
        put([code for code in codes if code.co_flags & CO_OPTIMIZED], self.functions)
        for name, failed in self.run_items(names):
            if failed:
                os.write(write, name.encode())
                os._exit(1)
        os._exit(0)

    def rank(self, name: str) -> tuple[int, float]:
        return -self.noticed[name], self.recorded.durations[name]

    def run_all(self) -> list[Mutant]:
        """Run each mutant's tests, some mutants at a time. Gives the survivors."""
        survivors: list[Mutant] = []
        running: dict[int, Started] = {}
        waiting = list(reversed(self.mutants))
        began, done = time.monotonic(), 0

        def note(mutant: Mutant, survived: bool, test: str = "") -> None:
            nonlocal done
            done += 1
            if survived:
                survivors.append(mutant)
                print(f"survived  {mutant}", flush=True)
            elif self.options.verbose:
                print(f"noticed  {mutant}  {test}", flush=True)
            if done % 100 == 0:
                print(f"{done} of {len(self.mutants)}, {time.monotonic() - began:.0f} s", flush=True)

        while waiting or running:
            while waiting and len(running) < self.options.workers:
                mutant = waiting.pop()
                if (started := self.start(mutant)) is None:
                    note(mutant, survived=True)
                else:
                    running |= [started]
            pid, status = os.waitpid(-1, os.WNOHANG) if running else (0, 0)
            if pid in running:
                mutant, _, failed = running.pop(pid)
                with open(failed, "rb") as pipe:
                    test = pipe.read().decode()
                self.noticed[test] += 1
                note(mutant, status == 0, test)
                continue
            for late in [pid for pid, one in running.items() if time.monotonic() > one.deadline]:
                os.killpg(late, signal.SIGKILL)
            time.sleep(0.002)
        return survivors


def _apart() -> None:
    """Be a group of processes of its own, which writes nowhere."""
    os.setsid()
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(sink, stream)


def run_alone(module: str, number: int) -> NoReturn:
    """Run a module's tests on one of its mutants, which is made before anything is imported."""
    mutant = next(mutant for mutant in mutants_of(module) if mutant.number == number)
    path = str(SOURCES / module)
    real: Callable[[SourceFileLoader, str], Any] = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        if loader.path == path:
            return mutant.compile()
        return real(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    limits = (f"--timeout={ALONE}", "--timeout-method=thread")  # which ends the process: a hang is noticed soon
    raise SystemExit(pytest.main(["-x", *PYTEST, *limits, *files_of(TESTS[module])]))


def files_of(tests: str) -> list[str]:
    return [str(ROOT / "tests" / file) for file in tests.split()]


def selected(places: list[str], options: argparse.Namespace) -> list[Mutant]:
    """The mutants of modules (`verdict.py`) or of lines (`verdict.py:410`), the slow ones last."""
    asked = [place.partition(":") for place in places or TESTS]
    mutants = []
    for module in dict.fromkeys(module for module, _, _ in asked):
        found = list(mutants_of(module))
        if unknown := REASONS.get(module, {}).keys() - {mutant.edit for mutant in found}:
            raise SystemExit(f"{module}: mutants.toml has an edit that is none: {min(unknown)}")
        lines = {line for name, _, line in asked if name == module}
        mutants += [one for one in found if lines & {"", str(one.line)} and one.edit not in REASONS.get(module, {})]
    if options.sample is not None:
        mutants = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    return sorted(mutants, key=lambda mutant: mutant.within is None)


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of the modules that decide what a hook means.")
    parser.add_argument("places", nargs="*", help="modules such as engine/run.py, or lines: engine/run.py:40")
    parser.add_argument("--sample", type=int, help="only so many mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="for --sample")
    parser.add_argument("--tests", type=int, help="only so many tests per mutant: a quick look, with false survivors")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true", help="say which test notices each mutant")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        run_alone(options.places[0], int(options.places[1]))
    mutants, began, failed = selected(options.places, options), time.monotonic(), False
    for tests in dict.fromkeys(TESTS[mutant.module] for mutant in mutants):
        if pid := os.fork():  # a process of its own for each collection
            failed |= os.waitpid(pid, 0)[1] != 0
            continue
        mutation = Mutation([mutant for mutant in mutants if TESTS[mutant.module] == tests], options)
        code = pytest.main([*PYTEST, *files_of(tests)], plugins=[mutation])
        if code not in (0, 5):
            os._exit(1)
        report(mutation)
        os._exit(1 if mutation.survivors else 0)
    print(f"{time.monotonic() - began:.0f} s")
    raise SystemExit(failed)


def report(mutation: Mutation) -> None:
    survived = Counter(mutant.module for mutant in mutation.survivors)
    for module, count in Counter(mutant.module for mutant in mutation.mutants).items():
        reasons = len(REASONS.get(module, {}))
        print(f"{module}: {count} mutants, {survived[module]} survived; {reasons} more have a reason", flush=True)


if __name__ == "__main__":
    main()
