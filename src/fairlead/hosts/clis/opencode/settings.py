"""Where OpenCode looks for hooks: a plugin, which fairlead writes as a whole."""

from __future__ import annotations

import msgspec

from ....lifecycle import GUARDING
from ..install.commands import launcher_argv
from ..install.settings import Settings, timeouts
from ..install.targets import OwnFile, Placement, SettingsTarget
from .mapping import HOST

_PLUGIN = """// fairlead: asks about each step of OpenCode. Written by `fairlead install opencode`; do not edit.
import { spawn } from "node:child_process"

const LAUNCHER = %(launcher)s  // the arguments of /bin/sh
const SECONDS = %(seconds)s
const OURS = %(ours)s

// Resolves with the launcher's answer. A missing or unreadable answer refuses a step that guards.
function ask(event, payload) {
  const ours = OURS[event]
  const guards = %(guarding)s.includes(ours)
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", [...LAUNCHER, String(SECONDS), ours, "opencode", event], {
      cwd: payload.cwd, env: process.env, stdio: ["pipe", "pipe", "pipe"],
    })
    let out = "", err = ""
    const none = (why) => resolve(guards ? { deny: "[fairlead] refused: " + why } : {})
    const timer = setTimeout(() => { child.kill("SIGKILL"); none("there was no answer in time") }, (SECONDS + 5) * 1000)
    child.stdout.on("data", (data) => { out += data })
    child.stderr.on("data", (data) => { err += data })
    child.on("error", (error) => { clearTimeout(timer); none(String(error)) })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code === 2) return resolve({ deny: err.trim() || "[fairlead] refused" })
      if (code !== 0) return none("the launcher ended with " + code)
      try { resolve(out.trim() ? JSON.parse(out) : {}) } catch (error) { none("the answer is not JSON") }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

export const fairlead = async ({ client, directory }) => {
  const parents = new Map()  // the parent of each subagent's session
  const send = (event, sessionID, payload) => ask(event, {
    hook_event_name: event, session_id: sessionID, parent_session_id: parents.get(sessionID) ?? null, cwd: directory,
    ...payload,
  })
  const carryOut = async (answer, sessionID) => {
    if (answer.stop) {
      try { await client.session.abort({ path: { id: sessionID } }) } catch {}
    }
    if (answer.deny || answer.stop) throw new Error(answer.deny ?? answer.stop)
  }
  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const sessionID = about.sessionID ?? about.info?.id
      if (event.type === "session.created" && about.info?.parentID) parents.set(sessionID, about.info.parentID)
      const name = "event:" + event.type
      if (name in OURS) await send(name, sessionID, { event })
    },
    "chat.message": async (input, output) => {
      const answer = await send("chat.message", input.sessionID, { input, output, agent: input.agent ?? null })
      if (answer.deny || answer.stop) console.error(answer.deny ?? answer.stop)
      await carryOut(answer, input.sessionID)
      if (answer.context) {
        const id = "prt_" + Date.now().toString(36) + Math.random().toString(36).slice(2, 12)
        const part = { id, sessionID: input.sessionID, messageID: output.message.id, type: "text" }
        output.parts.push({ ...part, text: answer.context, synthetic: true })
      }
    },
    "tool.execute.before": async (input, output) => {
      const about = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID, raw_input: input }
      const answer = await send("PreToolUse", input.sessionID, about)
      await carryOut(answer, input.sessionID)
      if (answer.args) {
        for (const key of Object.keys(output.args)) delete output.args[key]
        Object.assign(output.args, answer.args)
      }
    },
    "tool.execute.after": async (input, output) => {
      const about = { tool_name: input.tool, tool_use_id: input.callID, raw_input: input, raw_output: output }
      const answer = await send("PostToolUse", input.sessionID, about)
      await carryOut(answer, input.sessionID)
      if (answer.output !== undefined) {
        output.output = typeof answer.output === "string" ? answer.output : JSON.stringify(answer.output)
      }
      if (answer.context) output.output += "\\n\\n" + answer.context
    },
  }
}
"""


def _targets(placement: Placement) -> list[SettingsTarget]:
    """One plugin for all events, which waits as long as the shortest of them allows."""
    host, events = placement.host, placement.events
    seconds = min(timeouts(host, host.events[event], placement.timeout)[1] for event in events)
    return [OwnFile(placement.path, events, _plugin_text(launcher_argv(placement.launcher), seconds))]


def _plugin_text(launcher: list[str], seconds: float) -> str:
    """Return the plugin's source, with the launcher's command line and its time-out."""
    ours = {name: mapping.event for name, mapping in HOST.events.items() if mapping.installed}
    values = {"launcher": launcher, "seconds": seconds, "ours": ours, "guarding": GUARDING}
    return _PLUGIN % {name: msgspec.json.encode(value).decode() for name, value in values.items()}


SETTINGS = Settings(
    form="plugin",
    user="~/.config/opencode/plugin/fairlead.js",
    project=".opencode/plugin/fairlead.js",
    moved_by=("XDG_CONFIG_HOME", "~/.config"),
    targets=_targets,
    off_variables=("OPENCODE_PURE",),
)
