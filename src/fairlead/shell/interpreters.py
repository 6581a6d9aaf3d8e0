"""Program text on a command line: the commands in the code of `python -c`, `perl -e`, `awk`, `sed` and their like.

Code is not followed. A command that it names in a call such as `os.system("...")` is found. Code that may run anything
else, or a line that is made up in it, makes the command unsure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .commands import Command
from .outputs import input_of, output_of
from .words import IN_PART, Word, is_exact, made, may_vanish, unknown_of

if TYPE_CHECKING:
    from .reading import Shell

INTERPRETER = re.compile(
    r"(i?python|pypy|perl|ruby|node|nodejs|php|lua|luajit|bun|deno|julia|osascript|Rscript|tclsh|expect|tsx|ts-node)[\d.]*"
)
_FAMILY = {
    "ipython": "python",
    "pypy": "python",
    "luajit": "lua",
    "nodejs": "node",
    "bun": "node",
    "deno": "node",
    "tsx": "node",
    "ts-node": "node",
}
_CODE = {
    "python": "c", "perl": "eE", "ruby": "e", "node": "ep", "php": "rBRE", "lua": "e", "osascript": "e", "Rscript": "e",
    "julia": "eE", "expect": "c",
}  # fmt: skip
"""The options of interpreters that take program text."""
_VALUED = {"python": "mWX", "perl": "", "ruby": "rIC", "node": "r", "php": "dcz"}
_CODE_LONG = ("--eval", "--print", "--command", "eval")

_TEXT = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_RUNS = re.compile(
    r"""(?:\bsystem|\bpopen\w*|\bexec\w*|\bspawn\w*|\bshell_exec|\bpassthru|\bproc_open|\bcall|\brun|\bcheck_\w+
        |\bPopen|\bgetoutput|\bgetstatusoutput|\bdo\s+shell\s+script|\bCommand|%x|\bqx|\bexecute)
        (?:\s*[(\[{]|\s)\s*(?:args\s*=\s*)?(?:[(\[]\s*)?(?:\w+\.P_\w+\s*,\s*)?[fr]?(TEXT)
        ((?:\s*,\s*(?:[(\[]\s*)?TEXT)*)""".replace("TEXT", _TEXT),
    re.VERBOSE | re.DOTALL,
)
_TICKS = re.compile(r"`([^`]*)`")
_QUOTED_COMMAND = re.compile(
    r"(?:\bqx|%x|\b(?:system|exec)\b\s*(?:\(\s*)?q[qw]?)\s*(?:\{([^}]*)\}|\(([^)]*)\)|\[([^\]]*)\]|([/!|])(.*?)\4)",
    re.DOTALL,
)
_OPENS_PIPE = re.compile(
    r"""\bopen\w*\b[^;"']{0,80}(?:["']\s*\|([^"'|]+)["']|["']([^"'|]+)\|\s*["']|["'](?:-\||\|-)["']\s*,\s*["']([^"']+)["'])"""
)
"""`open F, "| rm x"`, `open F, "rm x |"`, `open F, "-|", "rm x"`"""
_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PLAIN_STRINGS = re.compile(
    r"""(?<![fF\w])[rbuRBU]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", re.DOTALL
)
_LONGEST = 65536

_MAY_RUN = {
    "python": re.compile(
        r"""\b(?:system|popen\w*|Popen|exec\w*|eval|\w*spawn\w*|fork\w*|startfile|getattr|attrgetter|methodcaller|compile
        |import_module|importlib|subprocess|pty|ctypes|cffi|runpy|multiprocessing|concurrent|asyncio|pickle|marshal|timeit
        |profile|cProfile|globals|vars|locals|builtins|modules|pexpect|plumbum|fabric|webbrowser|antigravity|pdb|pip|codeop
        |getoutput|getstatusoutput|posix|nt|_posixsubprocess|code|commands|vars
        |__(?!name__|main__|file__|version__|doc__|future__|all__)\w+__)\b""",
        re.VERBOSE,
    ),
    "node": re.compile(
        r"child_process|worker_threads|execa|shelljs|cross-spawn|\bzx\b|node-pty|['\"](?:node:)?(?:vm|cluster|module|repl)['\"]"
        r"|\b(?:exec\w*|spawn\w*|fork|eval|Function|constructor|globalThis|global|binding|dlopen|mainModule|Worker|Deno|Bun|Reflect)\b"
        r"|\brequire\s*(?!\s*\(\s*['\"])|\bimport\s*\(|\$`|process\s*\[|\w\s*\[\s*['\"]"
    ),
    "perl": re.compile(
        r"`|\b(?:system|exec|qx|eval|open\w*|readpipe|fork|syscall|require|do|glob|CORE|AUTOLOAD|sysopen|IPC|can)\b"
        r"|\buse\s+(?!strict|warnings|utf8|feature|integer|v?5|List::|POSIX|JSON|Data::Dumper|Time::|MIME::|Digest::)"
        r"|&\s*[{$]|->\s*\$|\*\s*\{|<[^<>\s]*\$"
    ),
    "ruby": re.compile(
        r"`|%x|\b(?:system|exec|\w*spawn\w*|popen\w*|open\w*|eval|\w+_eval|send|__send__|public_send|method|fork|load|Open3|PTY"
        r"|Kernel|IO|Process|const_get|Fiddle|binding|syscall|autoload)\b|\brequire(?!\s*\(?\s*['\"](?:json|yaml|csv|set|time|date|erb|uri|digest|base64|pp|securerandom)['\"])"
    ),
    "php": re.compile(
        r"`|\b(?:system|exec|shell_exec|passthru|popen|proc_open|pcntl_\w+|eval|assert|call_user_func\w*|include\w*|require\w*"
        r"|create_function|array_map|array_filter|array_walk\w*|u[ak]?sort|preg_replace\w*|mail|dl|FFI|Reflection\w*|register_\w+"
        r"|ob_start|unserialize|new)\b|\$\w+\s*\(|[\])}'\"]\s*\("
    ),
}
"""What code has that may run a program. Of other languages, any code may."""


def run_code(shell: Shell, command: Command) -> None:
    """Code on the line, or in what the interpreter reads, or in a file that the line wrote."""
    found = INTERPRETER.fullmatch(command.program)
    family = _FAMILY.get(found[1], found[1]) if found else ""
    code, file = code_of(command, family)
    if file:
        code = shell.script_of(command, file)
    if code is None:
        if not file and command.source is not None and not _only_tells(command):
            command.sure = False
        return
    follow_code(shell, command, code, family)
    if family == "perl" and any(word[:1] == "|" or word[-1:] == "|" for word in command.args):
        command.sure = False  # `<>` runs what a name with a bar says


def _only_tells(command: Command) -> bool:
    return any(
        word in ("--version", "-V", "-v", "--help", "-h", "-m") or word.startswith("-m") for word in command.args
    )


def follow_code(shell: Shell, command: Command, code: str, family: str) -> None:
    """The commands that a text of a programming language names."""
    shell.budget.spend(1 + len(code) // 64)
    via = f"{command.program} code"
    cut = len(code) > _LONGEST
    code = made([code[:_LONGEST], Word("", unknown_of(code))])
    for call in _RUNS.finditer(code):
        texts = [_decoded(a or b) for a, b in _STRING.findall(call[1] + call[2])]
        if len(texts) > 1 and len(call[0].split(texts[0])[0]) and re.match(r"\w*(?:exec|spawn)[lv]p?e?\b", call[0]):
            texts = texts[1:] if texts[1:2] == texts[:1] else texts
        if len(texts) > 1:
            known: list[str] = [Word(one, (IN_PART,)) if may_vanish([code]) else one for one in texts]
            shell.program(known, via, command, sure=False)
        elif texts:
            shell.line(Word(texts[0], ("code",)), via, command, apart=True)
    if family in ("perl", "ruby", "php"):
        for ticks in _TICKS.finditer(code):
            shell.line(Word(ticks[1], ("code",)), via, command, apart=True)
        for quoted in _QUOTED_COMMAND.finditer(code):
            text = next((part for part in (quoted[1], quoted[2], quoted[3], quoted[5]) if part), "")
            shell.line(Word(text, ("code",)), via, command, apart=True)
        for piped in _OPENS_PIPE.finditer(code):
            text = next(part for part in piped.groups() if part)
            shell.line(Word(_decoded(text), ("code",)), via, command, apart=True)
    if family == "awk":
        for pipe in _PIPES.finditer(code):
            shell.line(Word(_decoded(pipe[1] or pipe[2]).strip("| "), ("code",)), via, command, apart=True)
    if command.program.startswith("ipython"):
        for line in re.findall(r"(?m)^\s*!(.*)", code):
            shell.line(Word(line, ("code",)), via, command, apart=True)
        command.sure = False
    may_run = _MAY_RUN.get(family)
    bare = _PLAIN_STRINGS.sub('""', code) if family == "python" else code
    if cut or may_run is None or may_run.search(bare) or not is_exact(code):
        command.sure = False


_PIPES = re.compile(r"""\|\s*"([^"\\]*)"|"([^"\\]*)"\s*\|\s*getline""")


def _decoded(text: str) -> str:
    return re.sub(r"\\(\W)", r"\1", text)


def code_of(command: Command, family: str) -> tuple[str | None, str]:
    """The program text that an interpreter is given: `-c TEXT`, `-e TEXT`, or what it reads; or the file with it."""
    letters, valued = _CODE.get(family, ""), _VALUED.get(family, "")
    texts: list[str] = []
    args = iter(command.args)
    file = ""
    for word in args:
        if word in _CODE_LONG:
            texts.append(next(args, ""))
        elif word.startswith(("--eval=", "--print=", "--command=")):
            texts.append(word.partition("=")[2])
        elif word[:1] == "-" and len(word) > 1 and word[1] != "-":
            for at, letter in enumerate(word[1:], 2):
                if letter in letters:
                    rest = word[at:]
                    texts.append(
                        (Word(rest, unknown_of(word)) if unknown_of(word) else rest) if rest else next(args, "")
                    )
                    break
                if letter in valued:
                    rest = word[at:] or next(args, "")
                    if letter == "m":
                        return (None, "") if not _RUNS_ITS_CODE.match(rest) else (" ".join(args) + "\nexec", "")
                    break
        elif not word.startswith("-"):
            file = word
            break
    if texts:
        joined = "\n".join(texts)
        unknown = [one for text in texts for one in unknown_of(text)]
        return (Word(joined, unknown) if unknown else joined), ""
    if file and file not in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        return None, file
    return input_of(command), ""


_RUNS_ITS_CODE = re.compile(r"timeit|trace|pdb|profile|cProfile|code")

# --- awk, sed, make, vim -------------------------------------------------------------------------

_AWK_MAY_RUN = re.compile(
    r"\bsystem\b|\bgetline\b|@|\|&|\bprintf?\b(?:[^;}\n|p]|(?<=\w)p|p(?!rintf?\b)|\|\|)*\|(?!\|)|\bextension\b"
)


def run_awk(shell: Shell, command: Command) -> None:
    """`awk 'BEGIN { system("rm x") }'`"""
    texts: list[str | None] = []
    operands = command.operands
    texts += [command.options[option] for option in ("--source", "-e") if option in command.options]
    if command.has("--file", "-f"):
        file = command.options.get("--file") or command.options.get("-f") or ""
        texts.append(input_of(command) if file in ("-", "/dev/stdin") else shell.script_of(command, file) or "")
    elif not texts and operands:
        texts.append(operands[0])
    for text in texts:
        if text is None:
            command.sure = False
        elif _AWK_MAY_RUN.search(text):
            follow_code(shell, command, text, "awk")


_SED_REPLACES = re.compile(r"[sy]([^\w\s\\;])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)(?:\1([a-zA-Z0-9]*)|$)", re.DOTALL)
_SED_RUNS = re.compile(r"(?:^|[;{}\n!]|[\d$/IM])[^\S\n]*e(?:[ \t]+([^\n]*)|(?=[;}\n])|$)")


def run_sed(shell: Shell, command: Command) -> None:
    """GNU sed runs commands: `1e rm x`, `s/.*/rm x/e`."""
    scripts: list[str | None] = []
    args = iter(command.args)
    first = ""
    for word in args:
        if word in ("-e", "--expression"):
            scripts.append(next(args, ""))
        elif word.startswith(("--expression=", "-e")):
            scripts.append(word.partition("=")[2] if word[1] == "-" else word[2:])
        elif word in ("-f", "--file"):
            file = next(args, "")
            scripts.append(input_of(command) if file in ("-", "/dev/stdin") else shell.script_of(command, file) or "")
        elif re.fullmatch(r"-[nErszu]+[ef]", word):
            scripts.append(next(args, ""))
        elif word[:1] != "-" and not first:
            first = word
    for script in scripts or [first]:
        if script is None:
            command.sure = False
            continue
        for replaces in _SED_REPLACES.finditer(script):
            if "e" in (replaces[4] or "") and replaces[0][0] == "s":
                shell.line(Word(replaces[3], ("sed",)), "sed", command, apart=True)
                _run_pattern_space(shell, command)
        for runs in _SED_RUNS.finditer(_SED_REPLACES.sub("p", script)):
            command.sure = False
            if runs[1]:
                shell.line(Word(runs[1], ("sed",)), "sed", command, apart=True)
            else:
                _run_pattern_space(shell, command)


def _run_pattern_space(shell: Shell, command: Command) -> None:
    """`sed e`, `sed s/x/y/e`: each line that it reads may run, as it is or changed."""
    command.sure = False
    if text := input_of(command):
        shell.line(Word(text, ("sed",)), "sed", command, apart=True)


def run_make(shell: Shell, command: Command) -> None:
    """The recipes of a makefile that the line has: `make -f -`, `make --eval=...`."""
    texts: list[str | None] = []
    files: list[str] = []
    args = iter(command.args)
    for word in args:
        if word.startswith("--eval"):
            texts.append(word.partition("=")[2] or next(args, ""))
        elif word in ("--file", "--makefile") or re.fullmatch(r"-[a-zA-Z]*f", word):
            files.append(next(args, ""))
        elif word.startswith(("-f", "--file=", "--makefile=")):
            files.append(word.partition("=")[2] if word[1] == "-" else word[2:])
        elif word.startswith(("SHELL=", ".SHELLFLAGS=", "MAKEFLAGS=", "MAKE=")):
            command.sure = False
    for file in files or ["Makefile", "makefile", "GNUmakefile"]:
        reads = file in ("-", "/dev/stdin")
        if file.startswith("<("):
            texts.append(output_of([one for one in command.inner if one.via[-1:] == ("<(...)",)], shell.maybe))
        else:
            texts.append(input_of(command) if reads else shell.script_of(command, file) or "")
    for text in texts:
        if text is None:
            command.sure = False
            continue
        for runs in _MAKE_RUNS.finditer(text):
            shell.line(Word(runs[1] or runs[2], ("make",)), "make", command, apart=True)
        for line in text.split("\n"):
            recipe = line[1:] if line[:1] == "\t" else line.partition(";")[2]
            if recipe.strip():
                shell.line(Word(recipe.strip().lstrip("@+-"), ("make",)), "make", command, apart=True)
        if text:
            command.sure = False


_MAKE_RUNS = re.compile(r"\$[({]shell ([^\n]*?)[)}]?(?=\n|$)|!=[ \t]*([^\n]*)")
_EX_RUNS = re.compile(r"(?:^|[|\n])[^|\n!\"]*!\s*([^\n]*)|shell-command\S*\s+\"([^\"]*)\"")
_EX_MAY_RUN = re.compile(
    r"!|system|exe|term|py|lua|perl|ruby|tcl|so|job|call|eval|echo|\bcgetexpr|norm|make|grep|=|shell-command|process"
)


def run_editor(shell: Shell, command: Command) -> None:
    """`vim -c '!rm x'`, `ex +'!rm x'`"""
    texts: list[str] = []
    args = iter(command.args)
    for word in args:
        if word in ("-c", "--cmd", "-S", "-eval", "--eval", "-f"):
            texts.append(next(args, ""))
        elif word[:1] == "+" and len(word) > 1:
            texts.append(word[1:])
        elif word[:2] == "-c" and len(word) > 2:
            texts.append(word[2:])
        elif word.startswith("--eval="):
            texts.append(word[7:])
    silent = command.program in ("ed", "red", "ex") or command.has("-e", "-s", "-es")
    if silent and command.source is not None:
        text = input_of(command)
        texts += [text] if text is not None else []
        command.sure = command.sure and text is not None
    for text in texts:
        for runs in _EX_RUNS.finditer(text):
            shell.line(Word(runs[1] or runs[2] or "", ("editor",)), command.program, command, apart=True)
        if _EX_MAY_RUN.search(text) or not is_exact(text):
            command.sure = False
