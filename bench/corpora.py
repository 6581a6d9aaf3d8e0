"""Scores the packs, redaction and the guard on corpora, side by side with other guards, and writes docs/packs.md.

    make corpora CORPORA=/folder

Reads every `*.jsonl` of the folder. A row with a `command` is judged by the packs and the guard; its label is `block`
or `attack` (should be stopped), or `pass` or `ordinary` (should run). A row with a `text` whose label is `secret` or
`clean` is for redaction. A question counts as stopped. The other guards are installed into environments of their own
under build/rivals, and judge every n-th row of a long corpus. Rows whose label we dispute stand in disputed.json by
digest: they are counted, and the figure without them is beside.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from fairlead.lifecycle import BeforeTool
from fairlead.packs import packs
from fairlead.packs.guard import Guard
from fairlead.packs.judging import PackGate, PackOptions, line_of
from fairlead.redaction import Redactor

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
STOP = frozenset({"block", "attack"})
HOME, FOLDER = "/home/me", "/home/me/project"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
MARK = "[redacted"


class Rival(NamedTuple):
    """Another guard: what to install, and the program of bench/rivals that asks it."""

    name: str
    package: str
    judge: str
    judges: str


RIVALS = (
    Rival("cc-safety-net", "cc-safety-net@2.4.5", "judge_cc_safety_net.mjs", "commands"),
    Rival("Vectimus", "vectimus==0.22.2", "judge_vectimus.py", "commands"),
    Rival("nah", "nah==0.11.0", "judge_nah.py", "commands"),
    Rival("detect-secrets", "detect-secrets==1.5.0", "judge_detect_secrets.py", "secrets"),
)


def read_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each corpus. One whose rows are neither commands nor secrets is left out."""
    corpora = {}
    for path in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        kept = [row for row in rows if is_command(row) or is_text(row)]
        if kept:
            corpora[path.stem] = kept
        else:
            tell(f"{path.name}: no commands and no secrets; left out")
    return corpora


def is_command(row: dict[str, Any]) -> bool:
    return isinstance(row.get("command"), str) and row.get("label") in (*STOP, "pass", "ordinary")


def is_text(row: dict[str, Any]) -> bool:
    return isinstance(row.get("text"), str) and row.get("label") in ("secret", "clean")


def tell(text: str) -> None:
    print(text, file=sys.stderr)


def counted(rows: list[Any], what: str) -> Iterator[Any]:
    """The rows, with progress on a terminal."""
    shows = sys.stderr.isatty()
    for number, row in enumerate(rows, 1):
        yield row
        if shows and (number % 200 == 0 or number == len(rows)):
            print(f"\r{what}: {number} of {len(rows)}", end="" if number < len(rows) else "\n", file=sys.stderr)


# --- fairlead ---------------------------------------------------------------------------------------------------


def score_commands(name: str, rows: list[dict[str, Any]], disputed: dict[str, str]) -> dict[str, Any]:
    """What the packs say of each command of a corpus: per label, per pack, and which rows they get wrong."""
    gates = {one.name: PackGate(one, PackOptions()) for one in packs("recommended")}
    strict = [PackGate(one, PackOptions("strict")) for one in packs("recommended")]
    guard = Guard(Path(HOME, ".local/state/fairlead"))
    labels: dict[str, Counter[str]] = {}
    by_pack: dict[str, Counter[str]] = {}
    by_rule: Counter[str] = Counter()
    times, wrong = [], []
    for row in counted(rows, name):
        tool = "bash" if row.get("dialect", "sh") == "sh" else "powershell"
        step = BeforeTool(tool=tool, args={"command": row["command"]}, cwd=FOLDER)
        line_of.cache_clear()
        began = time.perf_counter()
        found = {pack: gate.worst(step) for pack, gate in gates.items()}
        times.append(time.perf_counter() - began)
        objecting = {pack: one for pack, one in found.items() if one is not None}
        label = row["label"]
        stops = label in STOP
        key = digest(row["command"])
        count = labels.setdefault(label, Counter())
        count["rows"] += 1
        count["stopped"] += bool(objecting)
        count["denied"] += any(one.rule.level == "disaster" for one in objecting.values())
        count["strict"] += bool(objecting) or any(gate.worst(step) is not None for gate in strict)
        count["guard"] += guard(step) is not None
        count["disputed"] += bool(objecting) != stops and key in disputed
        for pack, one in objecting.items():
            by_pack.setdefault(pack, Counter())[label] += 1
            if not stops:
                by_rule[one.rule.id] += 1
        if bool(objecting) != stops:
            rules = sorted(one.rule.id for one in objecting.values())
            wrong.append({"corpus": name, **row, "rules": rules, "disputed": disputed.get(key, "")})
    times.sort()
    return {
        "labels": {label: dict(count) for label, count in labels.items()},
        "packs": {pack: dict(count) for pack, count in by_pack.items()},
        "stopped_by_rule": dict(by_rule.most_common()),
        "median_us": median(times) * 1e6,
        "p99_us": times[int(len(times) * 0.99)] * 1e6,
        "worst_ms": times[-1] * 1e3,
        "wrong": wrong,
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def score_secrets(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many texts redaction changes, and how many secrets are gone as a whole."""
    redactor, labels, missed = Redactor(), dict[str, Counter[str]](), Counter[str]()
    for row in counted(rows, name):
        text = redactor.text(row["text"])
        count = labels.setdefault(row["label"], Counter())
        touched = text != row["text"]
        count["rows"] += 1
        count["touched"] += touched
        count["whole"] += touched and not (row.get("secret") and row["secret"] in text)
        if row["label"] == "secret" and not touched:
            missed[row.get("name") or class_of(row)] += 1
    return {"labels": {label: dict(count) for label, count in labels.items()}, "missed": dict(missed.most_common())}


def score_sources() -> dict[str, float]:
    """Redactions per MB of ordinary source code: the standard library's, without its tests."""
    redactor, size, marks = Redactor(), 0, 0
    began = time.perf_counter()
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("**/*.py"))
    files = [path for path in paths if not {"site-packages", "test", "tests", "idle_test"} & set(path.parts)]
    for path in counted(files, "standard library"):
        text = path.read_text(encoding="utf-8", errors="replace")
        size += len(text)
        marks += redactor.text(text).count(MARK) - text.count(MARK)
    return {"mb": size / 1e6, "per_mb": marks / (size / 1e6), "mb_per_s": size / 1e6 / (time.perf_counter() - began)}


def class_of(row: dict[str, Any]) -> str:
    """What kind of row it is, as far as the corpus says: its rule, or the file that it comes from."""
    return str(row.get("rule") or row.get("source", "").rpartition("/")[2] or "unknown")


# --- others -----------------------------------------------------------------------------------------------------


def install(rival: Rival, folder: Path) -> list[str]:
    """Install a rival into an environment of its own. Returns the command that asks it."""
    judge = str(HERE / "rivals" / rival.judge)
    place = folder / rival.name.lower()
    place.mkdir(parents=True, exist_ok=True)
    if judge.endswith(".mjs"):
        run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), rival.package])
        return ["node", judge, str(place)]
    python = place / "bin/python"
    if not python.exists():
        run([newest_python(), "-m", "venv", str(place)])
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", rival.package])
    return [str(python), judge]


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise OSError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")


def newest_python() -> str:
    """A Python of at least 3.12, which one rival needs, if there is one."""
    own = sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"), reverse=True)
    return next((str(path) for path in own if path.exists()), sys.executable)


def ask_rival(command: list[str], texts: list[str], what: str) -> tuple[list[str], float]:
    """The verdicts of a rival, and its median time in microseconds."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+", encoding="utf-8") as given:
        given.writelines(json.dumps(text) + "\n" for text in texts)
        given.seek(0)
        environment = {**os.environ, "HOME": folder}
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env=environment,
        )
        assert process.stdout is not None
        answers = [json.loads(next(process.stdout)) for _ in counted(texts, what)]
        process.wait()
    return [verdict for verdict, _ in answers], median(taken for _, taken in answers)


def score_rival(
    rival: Rival, command: list[str], corpora: dict[str, list[dict[str, Any]]], most: int
) -> dict[str, dict[str, Any]]:
    scores = {}
    for name, rows in corpora.items():
        field = "command" if rival.judges == "commands" else "text"
        is_fit = is_command if rival.judges == "commands" else is_text
        fit = [row for row in rows if is_fit(row) and row.get("dialect", "sh") == "sh"]
        if rival.judges == "secrets" and not any(row["label"] == "secret" for row in fit):
            continue
        fit = fit[:: max(1, -(-len(fit) // most))]
        if not fit:
            continue
        verdicts, taken = ask_rival(command, [row[field] for row in fit], f"{rival.name}, {name}")
        labels: dict[str, Counter[str]] = {}
        for row, verdict in zip(fit, verdicts, strict=True):
            count = labels.setdefault(row["label"], Counter())
            count["rows"] += 1
            count["stopped"] += verdict != "pass"
            count["broken"] += verdict == "broken"
        scores[name] = {"labels": {label: dict(count) for label, count in labels.items()}, "median_us": taken}
    return scores


# --- the page ---------------------------------------------------------------------------------------------------


def share(count: dict[str, int], what: str = "stopped") -> str:
    return f"{count.get(what, 0) / count['rows']:.1%}" if count.get("rows") else ""


def page(results: dict[str, Any]) -> str:
    """The figures as Markdown: no row of a corpus stands in it."""
    rivals = [rival.name for rival in RIVALS if rival.judges == "commands"]
    out = ["| corpus, label (rows) | packs | strict | guard | " + " | ".join(rivals) + " |"]
    out.append("|---|" + "---|" * (3 + len(rivals)))
    for name, score in results["commands"].items():
        for label, count in sorted(score["labels"].items()):
            cells = [f"{name}, {label} ({count['rows']})"]
            own = share(count)
            if count.get("disputed"):
                fair = count["rows"] - count["disputed"]
                right = count["stopped"] if label in STOP else count["stopped"] - count["disputed"]
                own += f" ({right / fair:.1%} without {count['disputed']} disputed)"
            cells += [own, share(count, "strict"), share(count, "guard")]
            for rival in rivals:
                of = results["rivals"].get(rival, {})
                found = of.get(name, {}).get("labels", {}).get(label) if "problem" not in of else None
                cells.append(share(found) if found else "not run")
            out.append("| " + " | ".join(cells) + " |")
    times = [f"{score['median_us']:.0f} us ({name})" for name, score in results["commands"].items()]
    out += ["", f"Median time per command, all packs together: {', '.join(times)}."]
    for rival, of in results["rivals"].items():
        if "problem" in of:
            out.append(f"{rival} could not be installed: {of['problem']}.")
        elif taken := [one["median_us"] for one in of.values()]:
            out.append(f"{rival}: {min(taken):,.0f} to {max(taken):,.0f} us.")
    out += ["", "### Per pack", "", "Share of the rows of each label that the pack stops by itself.", ""]
    labels = [(name, label) for name, score in results["commands"].items() for label in sorted(score["labels"])]
    out.append("| pack | " + " | ".join(f"{name}, {label}" for name, label in labels) + " |")
    out.append("|---|" + "---|" * len(labels))
    for one in packs("recommended"):
        cells = [one.name]
        for name, label in labels:
            score = results["commands"][name]
            stopped = score["packs"].get(one.name, {}).get(label, 0)
            cells.append(f"{stopped / score['labels'][label]['rows']:.2%}")
        out.append("| " + " | ".join(cells) + " |")
    ordinary = [
        one for score in results["commands"].values() for label, one in score["labels"].items() if label == "ordinary"
    ]
    if ordinary:
        asked = sum(one["stopped"] for one in ordinary) / sum(one["rows"] for one in ordinary)
        out += ["", f"Questions and denials per hundred ordinary commands: {asked * 100:.2f}."]
    out += ["", "### Ordinary commands that are stopped, by rule", "", "| rule | level | rows |", "|---|---|---|"]
    rules = {rule.id: rule for one in packs("recommended") for rule in one}
    stopped = Counter[str]()
    for score in results["commands"].values():
        if "ordinary" in score["labels"]:
            stopped.update(score["stopped_by_rule"])
    out += [f"| {rule} | {rules[rule].level} | {number} |" for rule, number in stopped.most_common()]
    out += ["", "### Missed, by class", "", "| corpus | class | rows |", "|---|---|---|"]
    for name, score in results["commands"].items():
        missed = Counter(class_of(row) for row in score["wrong"] if row["label"] in STOP and not row["disputed"])
        out += [f"| {name} | {kind} | {number} |" for kind, number in missed.most_common()]
    out += ["", "### Disputed labels", "", "| corpus | why | rows |", "|---|---|---|"]
    for name, score in results["commands"].items():
        why = Counter(row["disputed"] for row in score["wrong"] if row["disputed"])
        out += [f"| {name} | {reason} | {number} |" for reason, number in why.most_common()]
    if results["secrets"]:
        out += [
            "",
            "### Secrets",
            "",
            "| corpus, label (rows) | touched | as a whole | detect-secrets |",
            "|---|---|---|---|",
        ]
        for name, score in results["secrets"].items():
            for label, count in sorted(score["labels"].items()):
                of = results["rivals"].get("detect-secrets", {})
                found = of.get(name, {}).get("labels", {}).get(label) if "problem" not in of else None
                other = share(found) if found else "not run"
                own = f"{share(count, 'touched')} | {share(count, 'whole')}"
                out.append(f"| {name}, {label} ({count['rows']}) | {own} | {other} |")
            kinds = ", ".join(f"{kind} ({number})" for kind, number in list(score["missed"].items())[:12])
            out += ["", f"Missed: {kinds}."]
        source = results["sources"]
        out += [
            "",
            f"Ordinary source, the standard library ({source['mb']:.1f} MB): {source['per_mb']:.1f} redactions per MB.",
            f"Speed: {source['mb_per_s']:.1f} MB/s.",
        ]
    return "\n".join(out)


def write_page(path: Path, figures: str) -> None:
    """Put the figures into the page, between their marks."""
    text = path.read_text(encoding="utf-8") if path.exists() else f"# Packs, measured\n\n{BEGIN}\n{END}\n"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("CORPORA"), help="where the *.jsonl are")
    parser.add_argument("--json", type=Path, help="write all results there, the rows that are wrong included")
    parser.add_argument("--page", type=Path, help="the page whose figures to replace: docs/packs.md")
    parser.add_argument("--skip-rivals", action="store_true", help="judge with fairlead only")
    parser.add_argument("--rows", type=int, default=3000, help="rows of a corpus that each rival judges, at most")
    options = parser.parse_args()
    if not options.folder or not Path(options.folder).is_dir():
        parser.error("name a folder of corpora: make corpora CORPORA=/folder")
    corpora = read_rows(Path(options.folder))
    if not corpora:
        parser.error(f"{options.folder} holds no *.jsonl with commands or secrets")
    os.environ["HOME"], home = HOME, os.environ.get("HOME", "")
    reasons = json.loads((HERE / "disputed.json").read_text())
    disputed = {key: reason for reason, keys in reasons.items() for key in keys}
    results: dict[str, Any] = {"commands": {}, "secrets": {}, "rivals": {}, "sources": {}}
    for name, rows in corpora.items():
        if commands := [row for row in rows if is_command(row)]:
            results["commands"][name] = score_commands(name, commands, disputed)
        texts = [row for row in rows if is_text(row)]
        if any(row["label"] == "secret" for row in texts):
            results["secrets"][name] = score_secrets(name, texts)
    if results["secrets"]:
        results["sources"] = score_sources()
    os.environ["HOME"] = home
    for rival in () if options.skip_rivals else RIVALS:
        try:
            command = install(rival, ROOT / "build/rivals")
        except (OSError, subprocess.SubprocessError) as error:
            tell(f"{rival.name}: not installed: {error}")
            results["rivals"][rival.name] = {"problem": " ".join(str(error).split())[-200:]}
            continue
        results["rivals"][rival.name] = score_rival(rival, command, corpora, options.rows)
    figures = page(results)
    print(figures)
    if options.page:
        write_page(options.page, figures)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
