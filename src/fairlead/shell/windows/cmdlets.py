"""Names of Windows commands in one form, and their parameters: `ri -r -fo x` is `remove-item -recurse -force x`.

Names and parameters are compared without case, and a parameter may be shortened as far as only one can be meant. Of a
cmdlet that is not in the table, no parameter takes the word after it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from ..commands import Command
from ..options import Options, has_table, read_options
from ..words import Word, unknown_of

_ALIASES = """
remove-item: ri rm rmdir rd del erase | copy-item: cp copy cpi | move-item: mv move mi | rename-item: ren rni
get-content: gc cat type | set-content: sc | add-content: ac | clear-content: clc | clear-item: cli | new-item: ni
get-childitem: gci ls dir | get-item: gi | set-item: si | invoke-item: ii | remove-itemproperty: rp
set-itemproperty: sp | get-itemproperty: gp | clear-itemproperty: clp | copy-itemproperty: cpp
move-itemproperty: mp | rename-itemproperty: rnp | invoke-webrequest: iwr curl wget | invoke-restmethod: irm
invoke-expression: iex | invoke-command: icm | start-process: saps start | stop-process: spps kill
get-process: gps ps | start-service: sasv | stop-service: spsv | get-service: gsv | start-job: sajb
stop-job: spjb | remove-job: rjb | receive-job: rcjb | wait-job: wjb | get-job: gjb
foreach-object: foreach % | where-object: where ? | select-object: select | sort-object: sort
measure-object: measure | group-object: group | tee-object: tee | compare-object: compare diff
select-string: sls | format-table: ft | format-list: fl | format-wide: fw | format-custom: fc | out-host: oh
out-gridview: ogv | out-printer: lp | write-output: echo write | set-location: cd sl chdir | push-location: pushd
pop-location: popd | get-location: gl pwd | set-variable: sv set | get-variable: gv | new-variable: nv
remove-variable: rv | clear-variable: clv | set-alias: sal | new-alias: nal | get-alias: gal | export-alias: epal
import-alias: ipal | import-module: ipmo | remove-module: rmo | get-module: gmo | new-module: nmo
export-csv: epcsv | import-csv: ipcsv | get-command: gcm | get-help: help man | get-history: ghy h history
clear-history: clhy | invoke-history: ihy r | get-member: gm | get-unique: gu
new-psdrive: ndr mount | remove-psdrive: rdr | get-psdrive: gdr | enter-pssession: etsn | exit-pssession: exsn
new-pssession: nsn | remove-pssession: rsn | invoke-wmimethod: iwmi | remove-wmiobject: rwmi | set-wmiinstance: swmi
get-wmiobject: gwmi | invoke-cimmethod: icim | remove-ciminstance: rcim | get-clipboard: gcb | set-clipboard: scb
start-sleep: sleep | resolve-path: rvpa | convert-path: cvpa | clear-host: cls clear | mkdir: md
"""
ALIASES = {
    alias: name.strip()
    for entry in _ALIASES.replace("\n", "|").split("|")
    for name, _, names in [entry.partition(":")]
    for alias in names.split()
}
"""The cmdlet of each alias that PowerShell comes with."""
CMD_ALIASES = {"erase": "del", "rd": "rmdir", "md": "mkdir", "chdir": "cd", "rename": "ren"}
"""Commands of cmd that have two names."""
PROGRAMS_TOO = frozenset({"rm", "rmdir", "cp", "mv", "cat", "ls", "curl", "wget", "kill", "ps", "tee", "sort", "mount"})
"""Aliases that elsewhere, and in newer PowerShells, are programs of their own."""

_COMMON = """Verbose Debug ErrorAction= WarningAction= InformationAction= ErrorVariable= WarningVariable= OutVariable=
    OutBuffer= PipelineVariable= ProgressAction= WhatIf Confirm"""
_SHORT = {"ea": "erroraction", "ev": "errorvariable", "wa": "warningaction", "ov": "outvariable", "vb": "verbose",
          "db": "debug", "wi": "whatif", "cf": "confirm", "lp": "literalpath", "pspath": "literalpath"}  # fmt: skip
_PARAMETERS = """
remove-item | Path* LiteralPath* Filter= Include= Exclude= Recurse Force Credential= Stream=
copy-item | Path* Destination* LiteralPath* Filter= Include= Exclude= Recurse Force Container PassThru ToSession=
move-item | Path* Destination* LiteralPath* Filter= Include= Exclude= Force PassThru Credential=
rename-item | Path* NewName* LiteralPath* Force PassThru Credential=
new-item | Path* Name* ItemType= Value= Force Target=
get-childitem | Path* Filter* LiteralPath* Include= Exclude= Recurse Depth= Force Name Attributes= Directory File Hidden
get-content | Path* LiteralPath* ReadCount= TotalCount= Tail= Filter= Include= Exclude= Force Wait Raw Encoding=
  Delimiter= Stream= AsByteStream
set-content | Path* Value* LiteralPath* Filter= Include= Exclude= Force NoNewline Encoding= PassThru Stream=
add-content | Path* Value* LiteralPath* Filter= Include= Exclude= Force NoNewline Encoding= PassThru Stream=
clear-content | Path* LiteralPath* Filter= Include= Exclude= Force Stream=
out-file | FilePath* LiteralPath* Encoding= Append Force NoClobber NoNewline Width= InputObject=
tee-object | FilePath* LiteralPath* Append Variable= Encoding= InputObject=
clear-item | Path* LiteralPath* Filter= Include= Exclude= Force
set-item | Path* Value* LiteralPath* Filter= Include= Exclude= Force PassThru
set-itemproperty | Path* Name* Value* LiteralPath* Type= Filter= Include= Exclude= Force PassThru
remove-itemproperty | Path* Name* LiteralPath* Filter= Include= Exclude= Force
invoke-webrequest | Uri* OutFile= Method= Body= Headers= ContentType= UserAgent= UseBasicParsing Credential= InFile=
  TimeoutSec= Proxy= WebSession= SessionVariable= MaximumRedirection= SkipCertificateCheck PassThru Form= Token=
invoke-restmethod | Uri* OutFile= Method= Body= Headers= ContentType= UserAgent= UseBasicParsing Credential= InFile=
  TimeoutSec= Proxy= WebSession= SessionVariable= MaximumRedirection= SkipCertificateCheck PassThru Form= Token=
invoke-expression | Command*
invoke-command | ScriptBlock= ComputerName= Session= FilePath= ArgumentList= Credential= AsJob HostName= UserName=
start-process | FilePath* ArgumentList* WorkingDirectory= Verb= WindowStyle= Wait NoNewWindow PassThru Credential=
  RedirectStandardOutput= RedirectStandardError= RedirectStandardInput= LoadUserProfile UseNewEnvironment
stop-process | Id* Name= InputObject= Force PassThru
stop-service | Name* DisplayName= Force NoWait PassThru Include= Exclude=
set-service | Name* StartupType= Status= DisplayName= Description= ComputerName= Credential= PassThru Force
stop-computer | ComputerName* Force Credential=
restart-computer | ComputerName* Force Credential= Wait Timeout= For= Delay=
format-volume | DriveLetter* FileSystem= NewFileSystemLabel= Full Force Path= Partition= AllocationUnitSize= Compress
clear-disk | Number* RemoveData RemoveOEM Path= FriendlyName= UniqueId= InputObject=
remove-partition | DiskNumber* PartitionNumber* DriveLetter= Offset= InputObject=
initialize-disk | Number* PartitionStyle= Path= FriendlyName= UniqueId=
set-executionpolicy | ExecutionPolicy* Scope= Force
set-location | Path* LiteralPath* PassThru StackName=
push-location | Path* LiteralPath* PassThru StackName=
set-acl | Path* AclObject* LiteralPath* Filter= Include= Exclude= Passthru
foreach-object | Process= Begin= End= MemberName= ArgumentList= InputObject= Parallel= ThrottleLimit= AsJob
where-object | FilterScript= Property= Value= InputObject=
select-string | Pattern* Path* LiteralPath* SimpleMatch CaseSensitive Quiet List Include= Exclude= NotMatch AllMatches
  Encoding= Context= Raw
compress-archive | Path* DestinationPath* LiteralPath* CompressionLevel= Update Force PassThru
expand-archive | Path* DestinationPath* LiteralPath* Force PassThru
install-module | Name* RequiredVersion= Repository= Scope= Force AllowClobber SkipPublisherCheck Credential=
remove-aduser | Identity* Server= Credential= Partition=
powershell | Command= EncodedCommand= File= ExecutionPolicy= NoProfile NonInteractive NoExit NoLogo WindowStyle= Sta Mta
  Version= InputFormat= OutputFormat= ConfigurationName= PSConsoleFile= SettingsFile= WorkingDirectory= Login
"""
"""A line per cmdlet: parameters with = take a value, and those with * may be given by place."""
_SWITCH = re.compile(r"/[A-Za-z?][\w-]*(:.*)?", re.DOTALL)
_DASH = re.compile(r"[-\u2013\u2014\u2015]([A-Za-z_]\w*)(?:(:)(.*))?", re.DOTALL)
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat|com|ps1)$", re.IGNORECASE)
_CMDLET = re.compile(r"[a-z]+-[a-z]\w+")


class Parameters(NamedTuple):
    """The parameters of a cmdlet: by their lower-case name, how they are written, and whether they take a value."""

    written: dict[str, str]
    valued: frozenset[str]
    placed: frozenset[str]

    def in_full(self, name: str) -> str:
        """A parameter that may be shortened: `rec` is `recurse`. An exact name wins over longer ones."""
        name = _SHORT.get(name.casefold(), name.casefold())
        if name in self.written:
            return name
        meant = [known for known in self.written if known.startswith(name)]
        own = [known for known in meant if known not in _common()] or meant
        return own[0] if len(own) == 1 else name


@cache
def _common() -> frozenset[str]:
    return frozenset(word.rstrip("=").casefold() for word in _COMMON.split())


@lru_cache(maxsize=256)
def parameters_of(cmdlet: str) -> Parameters:
    """The table of a cmdlet. It is empty if the cmdlet is not known."""
    spec = _specs().get("powershell" if cmdlet == "pwsh" else cmdlet)
    if spec is None:
        return Parameters({}, frozenset(), frozenset())
    words = [*spec.split(), *_COMMON.split()]
    names = {word.rstrip("=*").casefold(): word.rstrip("=*") for word in words}
    valued = frozenset(word.rstrip("=*").casefold() for word in words if word[-1] in "=*")
    return Parameters(names, valued, frozenset(word[:-1].casefold() for word in words if word[-1] == "*"))


@cache
def _specs() -> dict[str, str]:
    lines = (line.partition(" | ") for line in _PARAMETERS.replace("\n  ", " ").strip().splitlines())
    return {name: spec for name, _, spec in lines}


def program_of(word: str) -> str:
    """The name of a program: in lower case, without its folder and its suffix."""
    name = re.split(r"[\\/]", word.rstrip("\\/"))[-1] or word
    name = _SUFFIX.sub("", name).lower() or name.lower()
    return Word(name, unknown_of(word)) if unknown_of(word) else name


class WindowsOptions(Options):
    """The options of a Windows command, compared without case: `has("-Force")`, `has("/S")`."""

    __slots__ = ()

    def has(self, names: Iterable[str]) -> bool:
        names = list(names)
        return super().has(names) or any(self._name(name) in self.options for name in names)

    def _name(self, name: str) -> str:
        return name.lower() if name[:1] == "/" else "-" + name.lstrip("-").lower()


class WindowsCommand(Command):
    """A command of PowerShell or cmd. It is never sure: the reader knows verbs, and little of what they are given."""

    __slots__ = ("listed",)

    def __init__(self, words: list[str], folder: str, via: tuple[str, ...], listed: Collection[int] = ()) -> None:
        super().__init__(words, folder, via, False)
        self.program = program_of(words[0]) if words else ""
        self.listed = frozenset(at - 1 for at in listed)
        """Which of its args go on with the list of the one before."""

    def _parse(self) -> list[tuple[str, Options]]:
        table = parameters_of(self.program)
        if table.written or _CMDLET.fullmatch(self.program):
            return [(self.program, read_parameters(table, self.args, self.listed))]
        return [(self.program, _read_switches(self.program, self.args))]


def read_parameters(table: Parameters, args: list[str], listed: Collection[int] = ()) -> WindowsOptions:
    """The parameters of a cmdlet. The value of one that may be given by place is an operand, too."""
    options: dict[str, str | None] = {}
    operands: list[str] = []
    spellings: dict[str, str] = {}
    name = ""  # the parameter whose value comes next
    placed = True  # is what comes an operand?
    for at, word in enumerate(args):
        found = _DASH.fullmatch(word) if at not in listed else None
        if found is not None:
            full = table.in_full(found[1])
            name, placed = "", True
            options[f"-{full}"] = found[3]
            spellings |= dict.fromkeys((f"--{full}", f"-{found[1]}", f"-{table.written.get(full, full)}"), f"-{full}")
            if full in table.valued:
                placed = full in table.placed
                name = f"-{full}" if not found[3] else ""
                operands += [found[3]] if found[3] and placed else []
            continue
        if name:
            options[name], name = word, ""
        elif at not in listed:
            placed = True
        if placed:
            operands.append(word)
    spellings = {spelling: full for spelling, full in spellings.items() if spelling != full}
    return WindowsOptions(options, operands, (spellings, frozenset(), frozenset(), frozenset()))


def _read_switches(program: str, args: list[str]) -> WindowsOptions:
    """The options of a program, or of a command of cmd's own: `/s`, `/t:fast`, and those with a dash."""
    if has_table(program):
        return WindowsOptions(*read_options(program, args))
    slashed: dict[str, str | None] = {}
    rest: list[str] = []
    spellings: dict[str, str] = {}
    for word in args:
        if _SWITCH.fullmatch(word):
            name, sign, value = word.partition(":")
            slashed[name.lower()] = value if sign else None
            if name != name.lower():
                spellings[str(name)] = name.lower()
            spellings[str(name).upper()] = name.lower()
        else:
            rest.append(word)
    read = read_options(program, rest)
    spellings = {spelling: full for spelling, full in spellings.items() if spelling != full}
    return WindowsOptions({**slashed, **read.options}, read.operands, ({**read.table[0], **spellings}, *read.table[1:]))
