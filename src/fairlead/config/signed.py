"""A signed trust file: one person looks at a project's hooks, and a whole team can rely on it.

`fairlead trust --sign KEY` writes `fairlead.trust` beside fairlead.toml, to be committed with it. It names the digests
that were looked at, and carries an SSH signature. Everyone whose own fairlead.toml lists the key in `trust_signers`
trusts just that content. An older signed file never takes the place of a newer one.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired, run

import msgspec

from ..errors import FairleadError
from ..logs import logger
from ..runners.surroundings import MissingProgram, resolve_program, surroundings
from .survey import Survey
from .trust import Trust

TRUST_FILE = "fairlead.trust"
NAMESPACE = "fairlead-trust"
"""What SSH signatures are for. One made for git or for mail counts for nothing here."""
_LIMIT = 64 << 10
_SLOWEST = 10.0
_AHEAD = 86400.0
"""Seconds that the signer's clock may be ahead of this one."""
_KEY = re.compile(r"((?:sk-)?(?:ssh|ecdsa)-[\w@.-]{3,64} [A-Za-z0-9+/]{32,}={0,2})(?: (.*))?")


class Statement(msgspec.Struct, forbid_unknown_fields=True):
    """What is signed: the digests of a project that may run, and since when."""

    digests: list[str]
    issued: float
    unpinned: bool = False


class SignedTrust(msgspec.Struct, forbid_unknown_fields=True):
    """The file: a statement and its signature."""

    statement: Statement
    signature: str


def read_signed(root: Path) -> SignedTrust | None:
    """The signed trust file of a project, if there is one that can be read."""
    try:
        with (root / TRUST_FILE).open("rb") as file:
            return msgspec.json.decode(file.read(_LIMIT), type=SignedTrust)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        logger.warning("%s cannot be read (%s)", root / TRUST_FILE, error)
        return None


def accept(found: Survey, trust: Trust, signers: Sequence[str]) -> bool:
    """Trust a project as it is if one of these signers has signed just that, later than what is trusted now."""
    root = Path(found.root)
    signed = read_signed(root)
    if signed is None or found.digest not in signed.statement.digests:
        return False
    statement, project = signed.statement, trust.project(root)
    known = project.snapshots if project is not None else []
    newest = max((snapshot.at for snapshot in known), default=0.0)
    if not newest <= statement.issued <= time.time() + _AHEAD or (found.uncovered and not statement.unpinned):
        return False
    together = statement.issued == newest  # several digests in one file are for several branches
    if together and any(snapshot.at == newest and snapshot.signer is None for snapshot in known):
        return False
    for key in signers:
        if _verifies(signed, key, root):
            parsed = _KEY.fullmatch(key)
            name = (parsed and parsed[2]) or key[:40]
            trust.pin(found, unpinned=statement.unpinned, also=together, signer=name, at=statement.issued)
            logger.info("%s is trusted: %s has signed it", root, name)
            return True
    logger.warning("%s is not signed by any of trust_signers", root / TRUST_FILE)
    return False


def write_signed(found: Survey, key: str, *, unpinned: bool, also: bool) -> float:
    """Sign a project as it was surveyed, and write the trust file. Gives the time that the signature names."""
    root = Path(found.root)
    before = read_signed(root) if also else None
    digests = [*(d for d in (before.statement.digests if before else []) if d != found.digest), found.digest]
    statement = Statement(digests, round(time.time(), 3), unpinned)
    signature = _ssh_keygen(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", key], _payload(statement), root, prompt=True)
    file = msgspec.json.format(msgspec.json.encode(SignedTrust(statement, signature)))
    try:
        (root / TRUST_FILE).write_bytes(file + b"\n")
    except OSError as error:
        raise FairleadError(f"{root / TRUST_FILE} cannot be written: {error.strerror}") from None
    return statement.issued


def _payload(statement: Statement) -> bytes:
    return msgspec.json.encode(statement, order="deterministic")


def _verifies(signed: SignedTrust, key: str, root: Path) -> bool:
    parsed = _KEY.fullmatch(key.strip())
    if parsed is None:
        logger.error("trust_signers: %r is no public key as ssh-keygen writes it", key[:60])
        return False
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        signers, signature = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text(f'fairlead namespaces="{NAMESPACE}" {parsed[1]}\n')
        signature.write_text(signed.signature)
        words = ["-Y", "verify", "-f", str(signers), "-I", "fairlead", "-n", NAMESPACE, "-s", str(signature)]
        try:
            _ssh_keygen(words, _payload(signed.statement), root)
        except FairleadError as error:
            logger.debug("%s: %s", root / TRUST_FILE, error)
            return False
    return True


def _ssh_keygen(words: list[str], payload: bytes, root: Path, *, prompt: bool = False) -> str:
    """Run ssh-keygen, which is never looked for in the project. With `prompt`, it may ask for a passphrase."""
    around = surroundings("/", env=("SSH_AUTH_SOCK", "TERM") if prompt else (), workspace=root)
    try:
        argv = [resolve_program("ssh-keygen", around), *words]
        done = run(  # noqa: S603 (argv, no shell)
            argv, input=payload, stdout=PIPE, stderr=None if prompt else DEVNULL, env=around.env, cwd="/",
            timeout=None if prompt else _SLOWEST, check=False,
        )  # fmt: skip
    except (MissingProgram, OSError, TimeoutExpired) as error:
        raise FairleadError(f"ssh-keygen is needed for signatures: {error}") from None
    if done.returncode != 0:
        raise FairleadError(f"ssh-keygen -Y {words[1]} ended with {done.returncode}")
    return done.stdout.decode(errors="replace")
