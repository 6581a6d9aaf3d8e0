"""OpenCode. Its hooks are functions of a plugin, so `fairlead install` writes a plugin that asks the launcher."""

from __future__ import annotations

from typing import Any

import msgspec

from ..lifecycle import GUARDING, Agent
from . import hook_json as said
from .effect import Effect
from .host import Host, Identity, Moment, Payload, a_dict, a_text, content, nothing, silence, unheard


def _identify(payload: Payload) -> Identity:
    session_id = a_text(payload.get("session_id"))
    for key in ("raw_input", "input", "event"):
        about = a_dict(payload.get(key))
        about = a_dict(about.get("properties")) if key == "event" else about
        session_id = session_id or a_text(about.get("sessionID"))
    info = a_dict(a_dict(a_dict(payload.get("event")).get("properties")).get("info"))
    parent = a_text(payload.get("parent_session_id")) or a_text(info.get("parentID"))
    cwd = a_text(payload.get("cwd")) or a_text(info.get("directory"))
    agent = Agent(session_id, a_text(payload.get("agent")), parent) if session_id else None
    return Identity(session_id, a_text(payload.get("message_id")), cwd, agent)


def _tool(payload: Payload) -> dict[str, Any]:
    about = a_dict(payload.get("raw_input"))
    args = payload.get("tool_input", about.get("args"))
    call_id = a_text(payload.get("tool_use_id")) or a_text(about.get("callID"))
    return {"tool": payload.get("tool_name"), "args": a_dict(args), "call_id": call_id}


def _tool_done(payload: Payload) -> dict[str, Any]:
    return {**_tool(payload), "output": content(a_dict(payload.get("raw_output")).get("output"))}


def _prompt(payload: Payload) -> dict[str, Any] | None:
    parts = a_dict(payload.get("output")).get("parts")
    texts = [part["text"] for part in parts or () if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return {"input": "\n".join(texts)} if texts else None


def _say(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """What the plugin does: `deny` throws, `stop` aborts, `args` and `output` are put in place, `context` is added."""
    told = {
        "deny": effect.deny, "stop": effect.stop, "args": effect.args, "output": effect.output,
        "context": said.joined(effect),
    }  # fmt: skip
    return {key: value for key, value in told.items() if value is not None}


HOST = Host(
    name="opencode",
    title="OpenCode",
    program="opencode",
    package="opencode-ai",
    proven="1.18.33",
    identify=_identify,
    tools=(("{todowrite,todoread,skill}", "agent", {}),),
    moments={
        "event:session.created": Moment("session_start", nothing, silence),
        "chat.message": Moment("before_input", _prompt, _say, ("deny", "stop", "abort", "context")),
        "PreToolUse": Moment("before_tool", _tool, _say, ("deny", "args", "stop", "abort")),
        "PostToolUse": Moment("after_tool", _tool_done, _say, ("deny", "output", "stop", "abort", "context")),
        "event:session.idle": Moment("before_turn_end", nothing, silence),
        "event:session.status": Moment("notification", unheard, silence, installed=False),
    },
)

_PLUGIN = """// fairlead: asks about each step of OpenCode. Written by `fairlead install opencode`; do not edit.
import { spawn } from "node:child_process"

const LAUNCHER = %(launcher)s  // what /bin/sh is given
const SECONDS = %(seconds)s
const OURS = %(ours)s

// The launcher's answer. One that does not come in time, or cannot be read, refuses where a refusal guards.
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
      try { resolve(out.trim() ? JSON.parse(out) : {}) } catch (error) { none("the answer is no JSON") }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

export const fairlead = async ({ client, directory }) => {
  const parents = new Map()  // the sessions of subagents, and whose they are
  const tell = (event, sessionID, payload) => ask(event, {
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
      if (name in OURS) await tell(name, sessionID, { event })
    },
    "chat.message": async (input, output) => {
      const answer = await tell("chat.message", input.sessionID, { input, output, agent: input.agent ?? null })
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
      const answer = await tell("PreToolUse", input.sessionID, about)
      await carryOut(answer, input.sessionID)
      if (answer.args) {
        for (const key of Object.keys(output.args)) delete output.args[key]
        Object.assign(output.args, answer.args)
      }
    },
    "tool.execute.after": async (input, output) => {
      const about = { tool_name: input.tool, tool_use_id: input.callID, raw_input: input, raw_output: output }
      const answer = await tell("PostToolUse", input.sessionID, about)
      await carryOut(answer, input.sessionID)
      if (answer.output !== undefined) {
        output.output = typeof answer.output === "string" ? answer.output : JSON.stringify(answer.output)
      }
      if (answer.context) output.output += "\\n\\n" + answer.context
    },
  }
}
"""


def plugin_text(launcher: list[str], seconds: float) -> str:
    """The plugin, for a launcher that has so many seconds."""
    ours = {name: moment.event for name, moment in HOST.moments.items() if moment.installed}
    told = {"launcher": launcher, "seconds": seconds, "ours": ours, "guarding": GUARDING}
    return _PLUGIN % {name: msgspec.json.encode(value).decode() for name, value in told.items()}
