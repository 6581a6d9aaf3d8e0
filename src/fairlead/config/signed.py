"""A signed trust file: one person looks at a project's hooks, and a whole team can rely on it.

`fairlead trust --sign KEY` writes `fairlead.trust` beside fairlead.toml, to be committed with it. It names the digests
that were looked at, and carries an SSH signature. Everyone whose own fairlead.toml lists the key in `trust_signers`
trusts just that content. A signed file takes the place of an older one of the same project, and of nothing else.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL, PIPE, TimeoutExpired, run

import msgspec
from msgspec.structs import replace

from ..errors import FairleadError
from ..redaction.logs import logger
from ..runners.environment import MissingProgram, hook_environment, resolve_program
from .public_keys import PUBLIC_KEY
from .regular_files import read_regular
from .survey import Survey
from .trust import Trust, TrustedProject

TRUST_FILE = "fairlead.trust"
NAMESPACE = "fairlead-trust"
"""What SSH signatures are for. One made for git or for mail counts for nothing here."""
_LIMIT = 64 << 10
_SLOWEST = 10.0
SAFE_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
"""Where programs are looked for that decide about trust: not where an environment says."""
_AHEAD = 86400.0
"""Seconds that the signer's clock may be ahead of this one."""


class Statement(msgspec.Struct, forbid_unknown_fields=True):
    """What is signed: the digests of one project that may run, and since when."""

    project: str
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
        return msgspec.json.decode(read_regular(root / TRUST_FILE, _LIMIT), type=SignedTrust)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        logger.warning("%s cannot be read (%s)", root / TRUST_FILE, error)
        return None


def newest_signed(roots: Sequence[Path]) -> float:
    """When the newest trust file of these folders was signed, as far as its date can be accepted."""
    files = (signed for root in roots if (signed := read_signed(root)) is not None)
    return max((min(signed.statement.issued, time.time() + _AHEAD) for signed in files), default=0.0)


def accept(found: Survey, trust: Trust, signers: Sequence[str], known: TrustedProject | None) -> bool:
    """Trust a project as it is if one of these signers has signed just that, later than what is `known`.

    What a human trusted here by hand, and what was signed for another project, only a human replaces.
    """
    root = Path(found.root)
    signed = read_signed(root)
    if signed is None or not _is_newer(signed.statement, found, known):
        return False
    for key in signers:
        if _verifies(signed, key):
            try:
                found.resolve({"PATH": SAFE_PATH})
            except FairleadError as error:
                logger.warning("%s is signed, and yet not trusted: %s", root, error)
                return False
            _pin(found, trust, key, signed.statement, known)
            return True
    logger.warning("%s is not signed by any of trust_signers", root / TRUST_FILE)
    return False


def _is_newer(statement: Statement, found: Survey, known: TrustedProject | None) -> bool:
    """Whether a statement is about this very content, and may take the place of what is trusted now."""
    before = known.snapshots if known is not None else []
    if any(snapshot.project != statement.project for snapshot in before):
        return False
    newest = known.newest if known is not None else 0.0
    is_now = newest < statement.issued <= time.time() + _AHEAD
    together = bool(before) and statement.issued == newest  # several digests in one file are for several branches
    covered = statement.unpinned or not found.uncovered
    return found.digest in statement.digests and covered and (is_now or together)


def _pin(found: Survey, trust: Trust, key: str, statement: Statement, known: TrustedProject | None) -> None:
    parsed = PUBLIC_KEY.fullmatch(key.strip())
    signer = (parsed and parsed[3]) or key[:40]
    together = known is not None and known.newest == statement.issued
    trust.pin(
        found, unpinned=statement.unpinned, also=together, signer=signer, project=statement.project, at=statement.issued
    )
    logger.info("%s is trusted: %s has signed it", found.root, signer)


def write_signed(found: Survey, key: str, *, unpinned: bool, also: bool) -> Statement:
    """Sign a project as it was surveyed, and write the trust file. Gives what was signed."""
    root = Path(found.root)
    before = read_signed(root)
    kept = [digest for digest in before.statement.digests if digest != found.digest] if before and also else []
    project = before.statement.project if before else token_hex(16)
    statement = Statement(project, [*kept, found.digest], round(time.time(), 3), unpinned)
    signature = _ssh_keygen(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", key], _payload(statement), prompt=True)
    file = msgspec.json.format(msgspec.json.encode(SignedTrust(statement, signature)))
    try:
        (root / TRUST_FILE).write_bytes(file + b"\n")
    except OSError as error:
        raise FairleadError(f"{root / TRUST_FILE} cannot be written: {error.strerror}") from None
    return statement


def _payload(statement: Statement) -> bytes:
    return msgspec.json.encode(statement, order="deterministic")


def _verifies(signed: SignedTrust, key: str) -> bool:
    parsed = PUBLIC_KEY.fullmatch(key.strip())
    if parsed is None:
        return False
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        signers, signature = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text(f'fairlead namespaces="{NAMESPACE}" {parsed[1]} {parsed[2]}\n')
        signature.write_text(signed.signature)
        words = ["-Y", "verify", "-f", str(signers), "-I", "fairlead", "-n", NAMESPACE, "-s", str(signature)]
        try:
            _ssh_keygen(words, _payload(signed.statement))
        except FairleadError as error:
            logger.debug("a signature does not hold: %s", error)
            return False
    return True


def _ssh_keygen(words: list[str], payload: bytes, *, prompt: bool = False) -> str:
    """Run the system's ssh-keygen, whatever PATH says. With `prompt`, it may ask for a passphrase."""
    environment = hook_environment("/", env=("SSH_AUTH_SOCK", "TERM") if prompt else ())
    environment = replace(environment, env=environment.env | {"PATH": SAFE_PATH}, path=SAFE_PATH)
    try:
        argv = [resolve_program("ssh-keygen", environment), *words]
        done = run(  # noqa: S603 (argv, no shell)
            argv, input=payload, stdout=PIPE, stderr=None if prompt else DEVNULL, env=environment.env, cwd="/",
            timeout=None if prompt else _SLOWEST, check=False,
        )  # fmt: skip
    except (MissingProgram, OSError, TimeoutExpired) as error:
        raise FairleadError(f"ssh-keygen is needed for signatures: {error}") from None
    if done.returncode != 0:
        raise FairleadError(f"ssh-keygen -Y {words[1]} ended with {done.returncode}")
    return done.stdout.decode(errors="replace")
