"""Python code that only reads and prints: what agents write to look at a file of settings."""

from __future__ import annotations

import ast
import re

_LONGEST = 2000
_ODD_ESCAPE = re.compile(r"\\[^nt\\'\"]")
_MODULES = frozenset({"os", "json", "tomllib", "tomli", "sys", "pprint", "re", "pathlib"})
_IMPORTED = frozenset({"Path", "PurePath", "pprint", "pformat"})
_FUNCTIONS = frozenset({
    "print", "open", "len", "sorted", "list", "dict", "set", "tuple", "str", "int", "repr", "enumerate", "zip", "range",
    "sum", "min", "max", "any", "all", "type", "isinstance", "bool", *_IMPORTED,
})  # fmt: skip
_METHODS = frozenset({
    "read", "readline", "readlines", "read_text", "read_bytes", "splitlines", "split", "strip", "rstrip", "lstrip",
    "get", "keys", "items", "values", "join", "format", "startswith", "endswith", "lower", "upper", "title", "count",
    "index", "find", "findall", "search", "match", "group", "groups", "loads", "dumps", "exists", "is_file", "is_dir",
    "stat", "expanduser", "resolve", "as_posix", "exit", "decode", "encode", "removeprefix", "removesuffix",
    "partition", "Path", "PurePath", "pprint", "pformat", "open", "isfile", "isdir", "getsize", "getmtime", "basename",
    "dirname", "abspath", "realpath", "listdir", "getcwd",
})  # fmt: skip
_OF_OS = frozenset({"path", "stat", "listdir", "getcwd", "environ", "sep"})
_LOADS = frozenset({"json", "tomllib", "tomli"})
_READ_MODES = frozenset({"r", "rb", "rt"})
_NODES = (
    ast.Module, ast.Expr, ast.Assign, ast.Import, ast.ImportFrom, ast.alias, ast.Call, ast.Attribute, ast.Name,
    ast.Load, ast.Store, ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.ListComp,
    ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.comprehension, ast.For, ast.If, ast.IfExp, ast.Compare, ast.cmpop,
    ast.BoolOp, ast.boolop, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.JoinedStr, ast.FormattedValue,
    ast.Starred, ast.keyword, ast.With, ast.withitem, ast.Assert, ast.Pass,
)  # fmt: skip


def only_prints(code: str) -> bool:
    """Does code consist of nothing but calls that read and print? In doubt, it does not."""
    if len(code) > _LONGEST or _ODD_ESCAPE.search(code):
        return False
    try:
        nodes = list(ast.walk(ast.parse(code)))
        return all(map(_is_allowed, nodes)) and sum(map(_is_os, nodes)) == sum(map(_is_of_os, nodes))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_os(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "os"


def _is_of_os(node: ast.AST) -> bool:
    """`os.path` and its like: the only parts of `os` that may be named."""
    return isinstance(node, ast.Attribute) and node.attr in _OF_OS and _is_os(node.value)


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return all(one.name in _MODULES and one.asname is None for one in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in _MODULES - {"os"} and all(
            one.name in _IMPORTED and one.asname is None for one in node.names
        )
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id not in _FUNCTIONS | _MODULES
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and not node.attr.startswith("_")
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call):
        return _is_reading(node)
    return isinstance(node, _NODES)


def _is_reading(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        name, values = function.attr, call.args
        if name == "load":
            return isinstance(function.value, ast.Name) and function.value.id in _LOADS
        if name not in _METHODS:
            return False
    elif isinstance(function, ast.Name) and function.id in _FUNCTIONS:
        name, values = function.id, call.args[1:]
    else:
        return False
    if name != "open":
        return True
    if any(isinstance(one, ast.Starred) for one in call.args):
        return False
    modes = [*values, *(one.value for one in call.keywords if one.arg not in ("encoding", "errors", "newline"))]
    return all(isinstance(mode, ast.Constant) and mode.value in _READ_MODES for mode in modes)
