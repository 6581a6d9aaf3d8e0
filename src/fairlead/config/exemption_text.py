"""Exemptions as text: a `[[exemption]]` to review, and a configuration file with more of them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import FairleadError
from ..hook import Layer
from ..packs.exemptions import Exemption
from .document import ConfigError, Document
from .layers import Config, ConfigFile, find, read
from .packs import read_packs


def toml_of(exemption: Exemption) -> str:
    """An exemption as it stands in a file."""
    fields = {
        "rule": exemption.rule, **exemption.match, "project": exemption.project, "reason": exemption.reason,
        "owner": exemption.owner,
    }  # fmt: skip
    lines = [f"{key} = {_quoted(value)}" for key, value in fields.items() if value]
    lines += [f"until = {exemption.until.isoformat()}"] if exemption.until is not None else []
    return "\n".join(["[[exemption]]", *lines, ""])


def _quoted(text: str) -> str:
    """A text as TOML has it: as in JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_request(path: Path) -> list[Exemption]:
    """The exemptions of a file that `fairlead exception request` has written, and of which a human approves."""
    document = Document(path)
    section = read_packs(document, "user", {})
    for key in document.data.keys() - {"exemption"}:
        document.wrong((key,), f"a request for an exception has nothing but [[exemption]] tables, and this is {key!r}")
    if document.mistakes:
        raise ConfigError(document.mistakes)
    if not section.exemptions:
        raise FairleadError(f"{path} has no [[exemption]]")
    return [exemption for exemption, _ in section.exemptions]


def with_exemptions(path: Path, layer: Layer, exemptions: Sequence[Exemption]) -> bytes:
    """The content of the system's or the user's file with more exemptions. Raises `ConfigError` if it has a mistake."""
    old = path.read_bytes() if os.path.lexists(path) else b""
    gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
    content = old + gap + "\n".join(map(toml_of, exemptions)).encode()
    file = ConfigFile(layer, Document(path, content), None)
    others = [one for one in read(find("/")).layers if one.layer in ("system", "user") and one.layer != layer]
    layers = sorted([*others, file], key=lambda one: one.layer != "system")
    mistakes = [one for one in Config(find("/"), layers).mistakes if one.file == str(path)]
    if mistakes:
        raise ConfigError(mistakes)
    return content
