"""[journal] and [redact] in fairlead.toml: every mistake at its place, and only in files an agent cannot change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.amounts import moment, seconds, size
from fairlead.config.layers import Config, Sources, read
from fairlead.config.project import ProjectSource
from fairlead.journal.anchor import Anchor


@pytest.fixture
def configured(home: Path) -> Any:
    """The configuration that these files make."""

    def configured(environ: Any = None, **texts: str) -> Config:
        files = {}
        for layer in ("system", "user", "project"):
            path = home / layer / "fairlead.toml"
            if layer in texts:
                path.parent.mkdir(exist_ok=True)
                path.write_text(texts[layer])
                path.chmod(0o644)
                files[layer] = path
        projects = (ProjectSource(files["project"].parent),) if "project" in files else ()
        return read(Sources(files.get("system"), files.get("user"), projects), environ=environ)

    return configured


def test_all_that_can_be_said_is_read(configured: Any) -> None:
    config = configured(
        user="""
[journal]
enabled = true
path = "/var/lib/x.db"
durability = "full"
on_failure = "open"
max_size = "2 GiB"
max_age = "1h30m"
anchor = { url = "https://x.example", every = "5m" }
"""
    )
    assert config.mistakes == []
    assert config.journal == {
        "enabled": True,
        "path": "/var/lib/x.db",
        "durability": "full",
        "on_failure": "open",
        "max_size": 2 << 30,
        "max_age": 5400.0,
        "anchor": Anchor(url="https://x.example", every=300.0),
    }


def test_the_home_folder_may_be_written_as_a_tilde(configured: Any, home: Path) -> None:
    assert configured(user='[journal]\npath = "~/x.db"').journal["path"] == f"{home}/home/x.db"


MISTAKES = [
    ("durabilty = 'full'", 1, "did you mean 'durability'?"),
    ("durability = 'ful'", 14, "did you mean 'full'?"),
    ("durability = ['full']", 14, "one of normal, full"),
    ("on_failure = 'close'", 14, "did you mean 'closed'?"),
    ("enabled = 'yes'", 11, "true or false"),
    ("path = 'here.db'", 8, "absolute path"),
    ("path = 5", 8, "absolute path"),
    ("max_size = 'big'", 12, "is not a size; write one like 500 MB"),
    ("max_size = 0", 12, "above 0"),
    ("max_size = true", 12, "above 0"),
    ("max_size = [1]", 12, "is not a size"),
    ("max_age = 'for ever'", 11, "is not a duration; write one like"),
    ("max_age = -1", 11, "above 0"),
    ("max_age = nan", 11, "above 0"),
    ("anchor = 'x'", 10, 'it must be { file = "..." }'),
    ("anchor = {}", 10, "one of file, command and url"),
    ("anchor = { file = '/x', url = 'https://x' }", 10, "one of file, command and url"),
    ("anchor = { fil = '/x' }", 10, "did you mean 'file'?"),
    ("anchor = { file = 5 }", 10, "file"),
    ("anchor = { file = 'here' }", 10, "absolute path"),
    ("anchor = { command = [] }", 10, "command"),
    ("anchor = { url = 'ftp://x' }", 10, "http"),
    ("anchor = { file = '/x', every = 'often' }", 10, "is not a duration"),
    ("anchor = { file = '/x', every = -1 }", 10, "every"),
    ("anchor = { file = '/x', every = inf }", 10, "every"),
]


@pytest.mark.parametrize(("line", "column", "says"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_is_said_at_its_place(line: str, column: int, says: str, configured: Any) -> None:
    (mistake,) = configured(user=f"\n[journal]\n{line}\n").mistakes
    assert (mistake.line, mistake.column) == (3, column)
    assert says in str(mistake)


def test_a_journal_that_is_no_table_is_said(configured: Any) -> None:
    (mistake,) = configured(user="journal = 5").mistakes
    assert "journal must be a table" in str(mistake)


REDACT_MISTAKES = [
    ("nams = ['x']", "did you mean 'names'?"),
    ("names = 'x'", "list of texts"),
    ("names = [5]", "list of texts"),
    ("names = ['']", "list of texts"),
    ("patterns = ['(']", "is not a regular expression"),
    ("patterns = ['a++']", "possessive quantifier"),
    ("patterns = ['.*']", "matches everything"),
    ("values = ['secret']", 'must be a list of { env = "NAME" }'),
    ("values = [{ env = 5 }]", "env"),
    ("values = [{ evn = 'X' }]", "env"),
    ("values = [{ }]", "env"),
]


@pytest.mark.parametrize(("line", "says"), REDACT_MISTAKES, ids=[line for line, _ in REDACT_MISTAKES])
@pytest.mark.parametrize("environ", [None, {}], ids=["this process's variables", "given variables"])
def test_a_mistake_in_what_is_redacted_is_said(environ: Any, line: str, says: str, configured: Any) -> None:
    (mistake,) = configured(user=f"[redact]\n{line}\n", environ=environ).mistakes
    assert mistake.line == 2
    assert says in str(mistake)


def test_a_value_that_is_redacted_comes_from_a_variable(configured: Any) -> None:
    config = configured(user='[redact]\nvalues = [{ env = "MINE" }]', environ={"MINE": "open sesame"})
    assert config.redact.values == ("open sesame",)


def test_a_variable_that_is_not_set_redacts_nothing(configured: Any) -> None:
    config = configured(user='[redact]\nvalues = [{ env = "MINE" }]', environ={})
    assert (config.mistakes, config.redact.values) == ([], ())


@pytest.mark.parametrize("table", ["journal", "redact"])
def test_a_project_has_no_say(table: str, configured: Any) -> None:
    key = {"journal": "enabled = false", "redact": "names = ['x']"}[table]
    config = configured(project=f"[{table}]\n{key}\n")
    (mistake,) = config.mistakes
    assert (mistake.line, f"a project cannot say anything about the {table}" in str(mistake)) == (1, True)


def test_what_a_project_says_does_not_count(configured: Any) -> None:
    assert configured(project="[journal]\nenabled = false\n").journal == {}


def test_what_the_system_says_holds(configured: Any) -> None:
    config = configured(
        system="[journal]\nenabled = true\nmax_age = '1d'", user="[journal]\nenabled = false\nmax_size = 5"
    )
    assert config.journal == {"enabled": True, "max_age": 86400.0, "max_size": 5}


def test_all_that_any_layer_redacts_is_redacted(configured: Any) -> None:
    config = configured(system="[redact]\nnames = ['a']", user="[redact]\nnames = ['b']\npatterns = ['c+']")
    assert (set(config.redact.names), config.redact.patterns) == ({"a", "b"}, ("c+",))


def test_a_journal_that_is_not_wanted_is_not_opened(configured: Any) -> None:
    assert configured(user="[journal]\nenabled = false").open_journal() is None


def test_a_journal_is_opened_as_the_files_say(configured: Any, home: Path) -> None:
    journal = configured(user=f"[journal]\npath = '{home}/mine.db'\ndurability = 'full'").open_journal()
    assert (journal.path, journal.durability, journal.on_failure) == (home / "mine.db", "full", "closed")


def test_the_commands_read_the_configured_journal(home: Path, cli: Any, open_journal: Any, keep: Any) -> None:
    config = home / "config/fairlead/fairlead.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[journal]\npath = '{home}/mine.db'\n")
    journal = open_journal(home / "mine.db")
    keep(journal, 1)
    journal.close()
    assert len(cli("log", "--json").json) == 1


# --- amounts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("30d", 2592000),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (5, 5),
    ],
)
def test_a_duration_is_read(text: Any, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "h", "5x", "-5m", "5m!", "1 000", "5 5", "ten", "1e5", True, None])
def test_what_is_no_duration_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500 MB", 500_000_000),
        ("1 GiB", 1 << 30),
        ("1.5kb", 1500),
        ("7", 7),
        ("1g", 1 << 30),
        ("2TB", 2 * 10**12),
        (9, 9),
    ],
)
def test_a_size_is_read(text: Any, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["", "big", "-5 MB", "5 MBs", "5 parsecs", True, None, "1 2"])
def test_what_is_no_size_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size(text)


def test_a_moment_is_a_date_or_how_long_ago() -> None:
    assert (moment("1970-01-01T00:00:10+00:00"), moment("2h", now=10_000)) == (10, 2800)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "0001-01-01", "25:00"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        moment(text)
