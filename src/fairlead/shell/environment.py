"""Variables of the environment that have programs run something: `EDITOR`, `GIT_SSH_COMMAND`, `BASH_ENV`."""

HOLDS_LINE = frozenset({
    "PROMPT_COMMAND", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "SSH_ASKPASS",
    "SUDO_ASKPASS", "LESSOPEN", "LESSCLOSE", "BROWSER", "RSYNC_RSH", "SUDO_EDITOR", "SYSTEMD_EDITOR",
    "KUBE_EDITOR",
})  # fmt: skip
"""Variables whose value programs run as a line."""
HOLDS_CODE = frozenset({
    "BASH_ENV", "ENV", "LD_PRELOAD", "LD_AUDIT", "PERL5OPT", "PERL5DB", "RUBYOPT", "NODE_OPTIONS",
    "PYTHONSTARTUP", "PS0", "PS4", "PYTHONINSPECT", "DYLD_INSERT_LIBRARIES", "TAR_OPTIONS", "BASH_FUNC",
    "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "JAVA_TOOL_OPTIONS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG", "GIT_EXEC_PATH",
})  # fmt: skip
"""Variables with which programs run more than the line says."""
PROMPTS = frozenset({"PS0", "PS1", "PS2", "PS4"})
"""Variables that shells expand when they prompt or trace: what is substituted in them runs."""
