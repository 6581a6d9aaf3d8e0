"""Importing the core is cheap and brings nothing along."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("pydantic", "httpx", "aiohttp", "starlette", "uvicorn", "opentelemetry", "pytest", "jsonschema", "watchfiles")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_core_imports_nothing_but_the_standard_library_and_msgspec():
    loaded = json.loads(
        run(
            "import sys, json, asyncio, msgspec; before = set(sys.modules); from fairlead import *;"
            "print(json.dumps(sorted({m.split('.')[0] for m in set(sys.modules) - before})))"
        )
    )
    assert set(loaded) - set(sys.stdlib_module_names) == {"fairlead"}


def test_no_extra_is_imported():
    loaded = run("import sys; from fairlead import *; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_every_public_name_exists_and_is_documented():
    import fairlead

    for name in fairlead.__all__:
        thing = getattr(fairlead, name)
        assert thing is not None
        if callable(thing):
            assert thing.__doc__, name


def test_the_package_says_it_is_typed():
    from importlib.resources import files

    assert (files("fairlead") / "py.typed").is_file()
