// Drives the executor of hooks of Copilot's language server: node jetbrains.cjs PACKAGE WORKSPACE FILE < CALL
"use strict";

const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { stub, find, evaluate } = require("./stub.cjs");

const [, , place, workspace, file] = process.argv;
const { toolName, toolArgs } = JSON.parse(readFileSync(0, "utf8"));
const text = readFileSync(join(place, "node_modules/@github/copilot-language-server/dist/main.js"), "utf8");

const start = text.indexOf("var snt=class"), end = text.indexOf("var Ike=class", start);
if (start < 0 || end < 0) throw new Error("the language server's code has another form");
const log = [];
class Log {
  warn(context, said) { log.push(said); }
  error(context, said) { log.push(said); }
  debug() {}
  info() {}
}
const known = { require, pe: Log, a: (named) => named, p: () => {} };
const Event = evaluate(`(function () { ${text.slice(start, end)}; return KE; })()`, known);
const denies = evaluate(`(function ${find(text, "checkPreToolUseHookResults(e)", "checkPreToolUseHookResults")})`, {
  ...known, Kfe: { allow: "allow", deny: "deny", ask: "ask" },
});

const hooks = JSON.parse(readFileSync(file, "utf8")).hooks.preToolUse;
const event = new Event(workspace, "preToolUse", hooks);
const context = { get: () => ({ isTrusted: () => true }) };
const payload = { timestamp: Date.now(), cwd: workspace, toolName, toolArgs: JSON.stringify(toolArgs) };
event.fire(context, payload).then((results) => console.log(JSON.stringify({ ...denies(results), log })));
