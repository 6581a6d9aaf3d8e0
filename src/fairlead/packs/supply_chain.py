"""Supply chain: where packages come from, and what is published in the user's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ..shell import Command
from .lines import PackLine
from .rules import Objection, Pack

supply_chain = Pack(
    "supply-chain", "Keeps packages to those of your registries, and your name from being published with."
)
_RISK = "ASI04 Agentic Supply Chain Vulnerabilities"
_PIPS = (
    "pip",
    "pip3",
    "uv",
    "pipx",
    "poetry",
    "pdm",
    "conda",
    "mamba",
    "rye",
    "easy_install",
    "python",
    "python3",
    "hatch",
)
_NPMS = ("npm", "yarn", "pnpm", "bun", "npx", "bunx", "pnpx", "deno", "yarnpkg", "corepack")
_OTHERS = (
    "rpm",
    "uvx",
    "easy_install",
    "gem",
    "cargo",
    "go",
    "composer",
    "brew",
    "apt",
    "apt-get",
    "dotnet",
    "nuget",
    "mvn",
    "gradle",
    "helm",
    "flatpak",
    "snap",
    "luarocks",
    "cpan",
    "cpanm",
    "opam",
    "stack",
    "cabal",
    "nix-env",
    "choco",
    "winget",
    "bundle",
    "mix",
    "dart",
    "flutter",
    "pod",
    "swift",
    "docker",
)
_KNOWN = re.compile(
    r"https://(?:[\w.-]+\.)?(?:pypi\.org|npmjs\.org|npmjs\.com|yarnpkg\.com|pythonhosted\.org|download\.pytorch\.org|"
    r"crates\.io|rubygems\.org|nuget\.org|packagist\.org|maven\.org|jsr\.io|anaconda\.org)(?:[/?]|$)"
)
"""Registries that package managers use unless told otherwise."""
_ELSEWHERE = re.compile(
    r"(?:@?[\w./-]+@)?(?:git\+|hg\+|svn\+|bzr\+)?(?:https?|ssh|git|ftp|file)://|git\+|git@|github:|gitlab:|bitbucket:|gist:"
)

_RUN_PACKAGES = frozenset({"npx", "bunx", "pnpx", "pipx", "uvx", "easy_install", "winget"})
_SHORT = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?:#.*)?")


def _short_addresses(words: list[str]) -> list[str]:
    """What npm takes from GitHub: `npm install owner/name`."""
    if not {"install", "i", "add"} & set(words[:1]):
        return []
    return [word for before, word in pairwise(words) if before[:1] != "-" and _SHORT.fullmatch(word)]


def _runs_pip(command: Command) -> list[str]:
    """The words after `pip`, also after `python -m pip` and `uv pip`. Empty if it is not pip."""
    words = list(map(str, command.args))
    if command.program in ("python", "python3") or re.fullmatch(r"python[\d.]+", command.program):
        if words[:2] == ["-m", "pip"]:
            return words[2:]
        return []
    return words[1:] if command.program == "uv" and words[:1] == ["pip"] else words


def _installs(words: list[str]) -> bool:
    return any(
        word in ("install", "i", "add", "in", "ins", "get", "exec", "dlx", "x", "create", "require", "isntall")
        for word in words[:3]
    )


@supply_chain.rule(
    "install-from-elsewhere",
    level="destructive",
    programs=(*_PIPS, *_NPMS, *_OTHERS),
    why="This installs a package from an address instead of a registry: its code runs here as you.",
    instead="Install it from the registry: `pip install requests`",
    risk=_RISK,
    stops=[
        "pip install git+https://github.com/x/y",
        "pip install https://e.example/x.whl",
        "npm install https://e.example/x.tgz",
        "npm i github:x/y",
        "npm i x/y",
        "uvx --from git+https://e.example/x y",
        "uvx ruff --with git+https://e.example/x",
        "uv run --with git+https://e.example/x main.py",
        "uvx --python 3.12 git+https://e.example/x",
        "rpm -i https://e.example/x.rpm",
        "easy_install http://e.example/x",
        "npx github:x/y",
        "cargo install --git https://e.example/x",
        "python -m pip install git+ssh://git@e.example/x",
        "uv pip install git+https://x/y",
        "gem install --source http://e.example x",
        "yarn add git@github.com:x/y.git",
        "yarn add evil@git+https://e.example/x",
        "cargo install --git=https://e.example/x",
        "brew install https://e.example/x.rb",
        "helm install x https://e.example/x.tgz",
        "apt install https://e.example/x.deb",
    ],
    passes=[
        "pip install requests",
        "pip install -r requirements.txt",
        "npm ci",
        "npm install",
        "npm i react",
        "npm i @types/node",
        "npm i ./packages/shared",
        "npm i --prefix web/app react",
        "npx eslint src/app",
        "uvx ruff check",
        "uvx yt-dlp https://x.example/y",
        "uv run --with requests main.py https://x.example/y",
        "rpm -i x.rpm",
        "pip install -e .",
        "pip install ./dist/x.whl",
        "cargo install ripgrep",
        "go get example.com/x",
        "apt install ./x.deb",
        "pip download git+https://x/y --no-deps",
        "npm view https://x",
    ],
)
def install_from_elsewhere(command: Command, line: PackLine) -> Objection:
    program = command.program
    words = _runs_pip(command) if program in _PIPS else list(map(str, command.args))
    if "--help" in words or "--dry-run" in words:
        return None
    if program == "helm" and words[:1] == ["repo"]:  # every repository has an address
        return None
    if program == "rpm":
        return any(map(_ELSEWHERE.match, words)) and not command.has("--import", "-q", "--query")
    if not (_installs(words) or program in _RUN_PACKAGES or (program == "uv" and {"--from", "--with"} & set(words))):
        return None
    if program == "docker":
        return None
    if program == "cargo":
        return any(word.startswith("--git") for word in words) and "install" in words
    if program in ("go", "deno"):
        return None
    if program == "pipx" and "run" in words:
        words = words[
            : next((at + 1 for at, word in enumerate(words) if word[:1] != "-" and word != "run"), len(words))
        ]
    if program == "gem":
        return command.has("--source", "-s") or any(map(_ELSEWHERE.match, words))
    if program == "uvx" or (program == "uv" and words[:1] == ["run"]):
        words = list(_of_runner(words, program))
    short = _short_addresses(words) if program in ("npm", "pnpm", "yarn", "bun") else ()
    return next(
        (
            word[:80]
            for word in (words if program in ("npx", "bunx", "pnpx", "uvx", "easy_install") else words[1:])
            if (_ELSEWHERE.match(word) or word in short)
            and not _is_index(words, word)
            and not line.is_allowed(word)
            and not _KNOWN.match(word)
        ),
        None,
    )


_OF_PACKAGE = frozenset({"--from", "--with", "--with-editable", "--with-requirements"})
_SWITCHES = frozenset({"-q", "--quiet", "--isolated", "--offline", "--no-cache", "--no-project", "--"})


def _of_runner(words: list[str], program: str) -> Iterator[str]:
    """The words of a runner of packages without those of what it runs: the address of `uvx yt-dlp ADDRESS`."""
    named, before = False, ""
    for at, word in enumerate(words):
        if not named or before in _OF_PACKAGE:
            yield word
        is_value = before[:1] == "-" and before not in _SWITCHES and "=" not in before
        named = named or (word[:1] != "-" and not is_value and not (program == "uv" and at == 0))
        before = word


def _is_index(words: list[str], word: str) -> bool:
    """Is it the value of an option that names a registry? Another rule looks at these."""
    at = words.index(word)
    return at > 0 and words[at - 1] in (
        "--index-url",
        "-i",
        "--extra-index-url",
        "--registry",
        "--find-links",
        "-f",
        "--index",
        "--default-index",
        "--trusted-host",
        "--proxy",
        "--repo",
        "--version",
        "--repository",
        "-R",
    )


_INDEXES = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "UV_INDEX_URL",
    "GOPROXY",
)
"""Variables that name a registry."""


def _takes_packages(words: list[str]) -> bool:
    """Does it install, or set where packages come from? `login`, `view` and `publish` do not."""
    reads = {"login", "logout", "whoami", "ping", "view", "info", "search", "show", "index", "versions", "publish"}
    return next((word for word in words if word[:1] != "-"), "") not in reads


@supply_chain.rule(
    "other-registry",
    level="destructive",
    programs=(
        *_PIPS,
        *_NPMS,
        "gem",
        "cargo",
        "bundle",
        "mvn",
        "dotnet",
        "nuget",
        "helm",
        "apt-add-repository",
        "add-apt-repository",
        "apt-key",
    ),
    why="This takes packages from another registry, where anyone may have the names that you use.",
    instead="Use the registry that is set: `npm install react`",
    risk=_RISK,
    stops=[
        "pip install --index-url http://e.example/simple x",
        "pip install --extra-index-url https://e.example x",
        "npm install --registry http://e.example x",
        "pip config set global.index-url https://e.example",
        "npm config set registry https://e.example",
        "pip install --trusted-host e.example x",
        "add-apt-repository ppa:x/y",
        "npm i --registry=https://e.example x",
        "yarn config set npmRegistryServer https://e.example",
        "npm set registry http://e.example",
        "PIP_INDEX_URL=http://e.example pip install x",
        "helm repo add x http://e.example",
    ],
    passes=[
        "npm install react",
        "pip install x",
        "npm config get registry",
        "pip install -i http://localhost:3141/simple x",
        "pip index versions x",
        "pip install --index-url https://pypi.org/simple x",
        "npm i --registry=https://registry.npmjs.org x",
        "helm repo add bitnami https://charts.bitnami.com/bitnami",
    ],
)
def other_registry(command: Command, line: PackLine) -> Objection:
    words = _runs_pip(command) if command.program in _PIPS else list(map(str, command.args))
    if command.program in ("apt-add-repository", "add-apt-repository"):
        return bool(command.operands) and not command.has("--remove", "-r", "--list")
    if command.program == "helm" and words[:2] == ["repo", "add"]:
        return next((word[:80] for word in words if word.startswith("http://") and not line.is_allowed(word)), None)
    if command.program == "apt-key":
        return words[:1] in (["add"], ["adv"])
    if not _takes_packages(words):
        return None
    if index := next((line.variables_of(command).get(name) for name in _INDEXES if name in line.text), None):
        return None if _KNOWN.match(index) or line.is_allowed(index) else index[:80]
    for before, word in zip(["", *words], [*words, ""], strict=False):
        name, _, value = word.partition("=")
        if (
            name in ("--index-url", "--extra-index-url", "--registry", "--trusted-host", "--index", "--default-index")
            and value
        ):
            index = value
        elif before in (
            "--index-url",
            "-i",
            "--extra-index-url",
            "--registry",
            "--trusted-host",
            "--index",
            "--default-index",
        ) or (
            before in ("global.index-url", "global.extra-index-url", "registry", "npmRegistryServer")
            and {"config", "set"} & set(words)
        ):
            index = word
        else:
            continue
        if before == "-i" and not _installs(words):
            continue
        is_address = "/" in index or before == "--trusted-host"
        if is_address and not _KNOWN.match(index) and not line.is_allowed(index):
            return index[:80]
    return None


_PUBLISHERS = (
    "npm", "yarn", "pnpm", "bun", "twine", "poetry", "flit", "hatch", "uv", "cargo", "gem", "pdm", "python", "python3",
    "mvn", "gradle", "dotnet", "vsce", "ovsx", "dart", "flutter", "pod", "lerna", "npx", "goreleaser",
    "semantic-release", "changeset", "mix", "jsr", "deno",
)  # fmt: skip


@supply_chain.rule(
    "install-in-r",
    level="destructive",
    programs=["r", "Rscript"],
    why="This installs a package from an address instead of a registry: its code runs here as you.",
    instead="Install it from the registry: `Rscript -e 'install.packages(\"dplyr\")'`",
    risk=_RISK,
    stops=[
        "Rscript -e 'devtools::install_github(\"x/y\")'",
        "R -e 'remotes::install_url(\"https://e.example/x.tgz\")'",
        'Rscript -e \'install.packages("x", repos="http://e.example")\'',
    ],
    passes=[
        "Rscript -e 'install.packages(\"dplyr\")'",
        'Rscript -e \'install.packages("dplyr", repos="https://cloud.r-project.org")\'',
        "Rscript x.R",
    ],
)
def install_in_r(command: Command, line: PackLine) -> Objection:
    text = " ".join(map(str, command.args))
    found = re.search(r"\binstall_(?:git\w*|url|bitbucket|svn)\(|\brepos\s*=\s*['\"]http:", text)
    return found and found[0]


@supply_chain.rule(
    "unpublish",
    level="destructive",
    programs=("npm", "yarn", "pnpm", "bun", "cargo", "gem", "vsce", "nuget", "dotnet", "mix", "pod"),
    why="This takes a published package from those who use it, or gives it to others.",
    instead="Publish a version that mends it, and let a human decide: `npm pack`",
    risk=_RISK,
    incident="2016-03: left-pad was unpublished, and builds everywhere broke.",
    stops=[
        "npm unpublish x -f",
        "cargo yank --version 1.0.0",
        "gem yank x -v 1",
        "npm owner add x y",
        "cargo owner --add x",
        "npm access public x",
        "vsce unpublish x",
    ],
    passes=[
        "npm pack",
        "cargo yank --undo --version 1.0.0",
        "npm owner ls",
        "npm unpublish x --dry-run",
        "cargo owner --list",
    ],
)
def unpublish(command: Command, line: PackLine) -> Objection:
    words = [str(word) for word in command.operands]
    words = words[1:] if words[:1] == ["npm"] else words
    if not words or command.has("--help", "--dry-run", "--undo"):
        return None
    if words[0] == "owner":
        return words[1:2] in (["add"], ["rm"]) or command.has("--add", "--remove")
    return words[0] in ("unpublish", "yank", "hex.retire") or words[:2] in (
        ["access", "public"],
        ["nuget", "delete"],
        ["trunk", "delete"],
    )


@supply_chain.rule(
    "publish",
    level="strict",
    programs=_PUBLISHERS,
    why="This publishes in the user's name; what is published is copied at once, and cannot be taken back.",
    instead="Build it, and let a human publish: `npm pack`",
    risk=_RISK,
    incident="2025-09: a worm in npm packages published itself with the tokens that it found.",
    stops=[
        "npm publish",
        "twine upload dist/*",
        "cargo publish",
        "poetry publish --build",
        "gem push x.gem",
        "uv publish",
        "npm deprecate x y",
        "python -m twine upload dist/*",
        "npm dist-tag add x@1 latest",
        "vsce publish",
        "npm token create",
    ],
    passes=[
        "npm pack",
        "npm run build",
        "npm publish --dry-run",
        "cargo publish --dry-run",
        "twine check dist/*",
        "poetry build",
        "npm run publish:docs",
        "dotnet publish -c Release",
    ],
)
def publish(command: Command, line: PackLine) -> Objection:
    program, words = command.program, [str(word) for word in command.operands]
    if command.has("--dry-run", "--help", "-n") or "--dry-run" in command.args:
        return None
    match program:
        case "python" | "python3":
            return list(map(str, command.args[:3])) == ["-m", "twine", "upload"]
        case "twine":
            return words[:1] == ["upload"]
        case "gem":
            return words[:1] == ["push"]
        case "mvn" | "gradle":
            return any(word in ("deploy", "publish", "release:perform", "publishToMavenCentral") for word in words)
        case "dotnet":
            return words[:2] == ["nuget", "push"]
        case "npx":
            return words[:1] and words[0] in ("semantic-release", "np")
        case "npm" | "yarn" | "pnpm" | "bun":
            words = words[1:] if words[:1] == ["npm"] else words
            return words[:1] in (["publish"], ["deprecate"]) or words[:2] in (
                ["dist-tag", "add"],
                ["dist-tag", "rm"],
                ["token", "create"],
            )
    return "publish" in words[:2] or words[:2] == ["trunk", "push"] or words[:1] == ["hex.publish"]


@supply_chain.rule(
    "checks-off",
    level="destructive",
    programs=(
        "npm",
        "yarn",
        "pnpm",
        "pip",
        "pip3",
        "curl",
        "wget",
        "git",
        "apt",
        "apt-get",
        "go",
        "export",
        "env",
        "",
        "node",
        "conda",
        "docker",
        "gem",
        "dpkg",
    ),
    why="This turns off the check that a download is what it says it is.",
    instead="Mend the certificate: `curl --cacert ca.pem https://host.example`",
    risk=_RISK,
    stops=[
        "npm config set strict-ssl false",
        "git config --global http.sslVerify false",
        "apt-get install --allow-unauthenticated x",
        "GIT_SSL_NO_VERIFY=1 git clone https://x/y",
        "export NODE_TLS_REJECT_UNAUTHORIZED=0",
        "git -c http.sslVerify=false clone https://x/y",
    ],
    passes=[
        "curl --cacert ca.pem https://host.example",
        "git config --global http.sslVerify true",
        "apt-get install x",
        "npm config get strict-ssl",
        "curl -k https://localhost:8443",
    ],
)
def checks_off(command: Command, line: PackLine) -> Objection:
    text = " ".join(
        [*(f"{name}={value}" for name, value in line.variables_of(command).items()), *map(str, command.args)]
    )
    found = re.search(
        r"(?i)strict-ssl[ =]false|sslverify[ =](?:false|0|no)|--allow-unauthenticated|--force-yes|"
        r"GIT_SSL_NO_VERIFY=(?:1|true)|"
        r"NODE_TLS_REJECT_UNAUTHORIZED=[\"']?0|PYTHONHTTPSVERIFY=0|GONOSUMCHECK=|GOFLAGS=-insecure|GONOSUMDB=\*|GOINSECURE=\*",
        text,
    )
    return found and found[0]


@supply_chain.rule(
    "install-scripts",
    level="strict",
    programs=("npm", "yarn", "pnpm", "bun", "pip", "pip3", "gem", "cargo", "apt", "apt-get", "brew", "npx", "go"),
    why="A package's own code runs when it is installed.",
    instead="Install what is pinned: `npm ci --ignore-scripts`",
    risk=_RISK,
    stops=["npm install left-pad", "pip install requests", "npx create-x", "gem install x", "npm install -g x"],
    passes=["npm ci --ignore-scripts", "pip list", "npm run build", "npm test"],
)
def install_scripts(command: Command, line: PackLine) -> Objection:
    words = list(map(str, command.args))
    return (
        (_installs(words) or command.program == "npx") and "--ignore-scripts" not in words and "--dry-run" not in words
    )
