"""Claude Code's vendor, faked on loopback: the model, and the settings that its admin console serves, at one address.

With `ANTHROPIC_BASE_URL` Claude Code asks for no served settings. So it runs in a mount namespace of its own, where
/etc says that the vendor's host is on loopback, and holds the machine's managed settings.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import subprocess
import threading
from http.server import ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Self

from fairlead.hosts.clis.claude_code.probe import ClaudeCode
from fairlead.hosts.clis.probe.dialects import HttpReply
from fairlead.hosts.clis.probe.model import Model, ScriptedTurn

VENDOR = "api.anthropic.com"
SETTINGS = "/api/claude_code/settings"
PORT = 443
MISSING = ("openssl", "unshare", "mount")
MOUNT = 'mount --bind "$0" /etc && exec "$@"'


class Console(Model):
    """The scripted model at the vendor's own address. `served` are the console's settings; None: its endpoint fails."""

    def __init__(self, folder: Path, served: dict[str, Any] | None, *script: ScriptedTurn) -> None:
        super().__init__(*script)
        self._folder, self._served = folder, served
        self.fetched = 0
        """How often the CLI fetched the settings."""

    @property
    def certificate(self) -> Path:
        return self._folder / "vendor.pem"

    def __enter__(self) -> Self:
        self._make_certificate()
        self._server, self.address = self._listen()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self._folder / "vendor.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"https://{VENDOR}"
        return self

    def _listen(self) -> tuple[ThreadingHTTPServer, str]:
        """A loopback address of its own, because tests run in parallel."""
        for number in count(2):
            try:
                return ThreadingHTTPServer((f"127.0.0.{number}", PORT), self._handler()), f"127.0.0.{number}"
            except OSError:
                if number > 200:
                    raise
        raise AssertionError

    def _make_certificate(self) -> None:
        names = ["-subj", f"/CN={VENDOR}", "-addext", f"subjectAltName=DNS:{VENDOR}"]
        files = ["-keyout", str(self._folder / "vendor.key"), "-out", str(self.certificate)]
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
        subprocess.run(make, check=True, capture_output=True)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> HttpReply:
        if path.partition("?")[0] != SETTINGS:
            return super().answer(method, path, body)
        self.fetched += 1
        if self._served is None:
            return HttpReply(500, "application/json", b"{}")
        text = json.dumps(self._served, sort_keys=True, separators=(",", ":"))
        checksum = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        body = {"uuid": "console", "checksum": checksum, "settings": self._served}
        return HttpReply(200, "application/json", json.dumps(body).encode())


class ClaudeCodeAtVendor(ClaudeCode):
    """Claude Code as it is used without a gateway: it asks the vendor's own host, which is on loopback here."""

    def variables(self, model: Model) -> dict[str, str]:
        assert isinstance(model, Console)
        kept = super().variables(model) | {"NODE_EXTRA_CA_CERTS": str(model.certificate)}
        for name in ("ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"):  # with these it does not ask
            del kept[name]
        return kept

    def prepare(self, model: Model) -> None:
        """Have a copy of /etc say where the vendor is, and nothing else be found by its name."""
        assert isinstance(model, Console)
        if not self.etc.exists():
            shutil.copytree("/etc", self.etc, symlinks=True, ignore=shutil.ignore_patterns("shadow*", "gshadow*"))
        (self.etc / "hosts").write_text(f"127.0.0.1 localhost\n{model.address} {VENDOR}\n")
        (self.etc / "resolv.conf").unlink(missing_ok=True)
        (self.etc / "resolv.conf").write_text("nameserver 127.0.0.1\n")

    @property
    def etc(self) -> Path:
        return self.home.parent / "etc"

    def argv(self, prompt: str) -> list[str]:
        return [*namespace(), "sh", "-c", MOUNT, str(self.etc), *super().argv(prompt)]


def namespace() -> list[str]:
    """How this user gets a mount namespace. Raises `RuntimeError` where the system allows none."""
    if missing := [name for name in MISSING if shutil.which(name) is None]:
        raise RuntimeError(f"{', '.join(missing)} cannot be found")
    for options in (["-m"], ["-rm"]):
        if subprocess.run(["unshare", *options, "true"], capture_output=True, check=False).returncode == 0:
            return ["unshare", *options]
    raise RuntimeError("no mount namespace can be made here")
