// Drives VS Code's own reader, service and executor of hooks: node vscode.cjs PACKAGE WORKSPACE FILE... < CALL
// The files are those of hooks that VS Code would find: Copilot's and Claude Code's.
"use strict";

const { readFileSync } = require("node:fs");
const { homedir } = require("node:os");
const { basename, dirname, isAbsolute, join } = require("node:path");
const { stub, find, evaluate } = require("./stub.cjs");

const [, , place, workspace, ...files] = process.argv;
const { tool_name: tool, tool_input: args } = JSON.parse(readFileSync(0, "utf8"));
const code = join(place, "node_modules/code-server/lib/vscode");

function between(text, from, to) {
  const start = text.indexOf(from), end = text.indexOf(to, start);
  if (start < 0 || end < 0) throw new Error(`VS Code's code has another form: no ${from} before ${to}`);
  return text.slice(start, end);
}

const uri = (path) => ({ path, fsPath: path });
const workbench = readFileSync(join(code, "out/vs/code/browser/workbench/workbench.js"), "utf8");
const names = between(workbench, "var eE=(u=>(u.SessionStart=", ",Ek={SessionStart:{label");
const reading = between(workbench, "function Yct(s){if(Object.values(eE)", "function w0o(s,o,e,t)");
const reader = evaluate(`(function () { ${names}; ${reading}; return { read: WFe, line: MB }; })()`, {
  P: { file: uri }, ze: (base, path) => uri(join(base.path, path)), zl: isAbsolute, YH: (path) => path, fn: basename, tu: dirname,
});
const LINUX = 3;
const hooks = files.flatMap((file) => {
  const found = reader.read(uri(file), JSON.parse(readFileSync(file, "utf8")), uri(workspace), homedir());
  return found.hooks.get("PreToolUse")?.hooks ?? [];
});
const commands = hooks.map((hook) => ({ command: reader.line(hook, LINUX), timeout: hook.timeout, cwd: hook.cwd }));

const text = readFileSync(join(code, "extensions/copilot/dist/extension.js"), "utf8");
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

const log = [];
process.on("uncaughtException", (error) => log.push(String(error))); // as VS Code does: a hook may not read its stdin
const quiet = { debug: () => {}, trace: () => {}, warn: (said) => log.push(said), error: (said) => log.push(String(said)) };
const output = { appendLine: () => {} };
const transcripts = { flush: async () => {}, getTranscriptPath: () => undefined };
const spans = { startSpan: () => ({ setAttribute() {}, setStatus() {}, recordException() {}, end() {} }), config: {} };
const service = new Service(transcripts, quiet, new Executor(quiet, output), output, stub, stub, spans);
service._telemetry = { logHookExecuted() {}, logPreToolUseResult() {} };

(async () => {
  const token = { onCancellationRequested: () => ({ dispose() {} }), isCancellationRequested: false };
  const result = await service.executePreToolUseHook(tool, args, "call-1", { PreToolUse: commands }, "session-1", token);
  console.log(JSON.stringify({ result: result ?? null, ran: commands.length, log }));
})();
