// Drives VS Code's own service and executor of hooks: node vscode.cjs PACKAGE WORKSPACE FILE < CALL
// FILE is a file of hooks for Copilot. VS Code maps its events and keys as here.
"use strict";

const { readFileSync } = require("node:fs");
const { homedir } = require("node:os");
const { join } = require("node:path");
const { stub, find, evaluate } = require("./stub.cjs");

const [, , place, workspace, file] = process.argv;
const { tool_name: tool, tool_input: args } = JSON.parse(readFileSync(0, "utf8"));
const text = readFileSync(join(place, "node_modules/code-server/lib/vscode/extensions/copilot/dist/extension.js"), "utf8");

const known = { require, gii: require("node:os"), Aii: require("node:child_process"), tl: false, pii: 30, tUa: 5000, hr: () => {} };
known.gAn = { deny: 2, ask: 1, allow: 0 };
known.Tza = new Map([["Stop", "SubagentStop"], ["SessionStart", "SubagentStart"]]);
known.Rza = ["toolArgs", "tool_input"];
known.Pte = (said) => said.trim();
known.Mze = () => false;
known.Pi = { create: () => ({ elapsed: () => 0 }) };
known.Vl = async () => undefined;
known.ho = (said) => said;
for (const name of ["mii", "nUa", "rUa", "cdi", "JD"]) known[name] = evaluate(`(${find(text, `function ${name}(`, "function ")})`, known);
const Executor = evaluate(`(${find(text, "async executeCommand(e,n,r){this._logService", "class{")})`, known);
const Service = evaluate(`(${find(text, "async executePreToolUseHook(", "class{")})`, known);

const settings = JSON.parse(readFileSync(file, "utf8")).hooks;
const commands = settings.preToolUse.map((entry) => ({
  command: entry.bash, timeout: entry.timeoutSec, cwd: { fsPath: workspace },
}));
const log = [];
const quiet = { debug: () => {}, trace: () => {}, warn: (said) => log.push(said), error: (said) => log.push(String(said)) };
const output = { appendLine: () => {} };
const transcripts = { flush: async () => {}, getTranscriptPath: () => undefined };
const spans = { startSpan: () => ({ setAttribute() {}, setStatus() {}, recordException() {}, end() {} }), config: {} };
const service = new Service(transcripts, quiet, new Executor(quiet, output), output, stub, stub, spans);
service._telemetry = { logHookExecuted() {}, logPreToolUseResult() {} };

(async () => {
  const token = { onCancellationRequested: () => ({ dispose() {} }), isCancellationRequested: false };
  const result = await service.executePreToolUseHook(tool, args, "call-1", { PreToolUse: commands }, "session-1", token);
  console.log(JSON.stringify({ result: result ?? null, log }));
})();
