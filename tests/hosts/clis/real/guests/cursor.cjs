// Drives Cursor's own loader and executor of hooks: node cursor.cjs PACKAGE WORKSPACE STEP < REQUEST
"use strict";

const { spawn } = require("node:child_process");
const { existsSync, readFileSync } = require("node:fs");
const { homedir } = require("node:os");
const { join } = require("node:path");
const { stub } = require("./stub.cjs");

const [, , place, workspace, step] = process.argv;
const request = JSON.parse(readFileSync(0, "utf8"));

const AFTER = "class vE{constructor(e){this.config=e";
const text = readFileSync(join(place, "node_modules/@cursor/sdk/dist/cjs/342.js"), "utf8");
if (!text.includes(AFTER)) throw new Error("Cursor's code has another form");
const chunk = {};
new Function("exports", text.replace(AFTER, `globalThis.cursor={Loader:gE,Executor:pE};${AFTER}`))(chunk);
const load = Object.assign((name) => (name.startsWith("node:") ? require(name) : stub), {
  d: () => {}, r: () => {}, t: (found) => found, n: (found) => () => found, o: () => true, e: () => stub,
});
try {
  chunk.modules["./src/agent/local-executor.ts"]({}, {}, load);
} catch (error) {
  if (!globalThis.cursor) throw new Error(`Cursor's code cannot be loaded: ${String(error).slice(0, 300)}`);
}

async function* execute(context, command, { workingDirectory, env, signal }) {
  const options = { cwd: workingDirectory, env: { ...process.env, ...env }, signal, stdio: ["ignore", "pipe", "pipe"] };
  const child = spawn("/bin/sh", ["-c", command], options);
  const parts = [];
  child.stdout.on("data", (data) => parts.push({ type: "stdout", data }));
  child.stderr.on("data", (data) => parts.push({ type: "stderr", data }));
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  yield* parts;
  yield { type: "exit", code };
}

(async () => {
  const settings = (folder, name) => join(folder, name);
  const reader = {
    exists: async (path) => existsSync(path),
    readFile: async (path) => readFileSync(path, "utf8"),
    pathContainsSymlink: async () => false,
  };
  const loader = new globalThis.cursor.Loader(reader, {
    enterpriseConfigPath: "/etc/cursor/hooks.json",
    teamConfigPath: settings(homedir(), "team-hooks.json"),
    userConfigPath: settings(homedir(), ".cursor/hooks.json"),
    claudeUserConfigPath: settings(homedir(), ".claude/settings.json"),
    projectConfigPath: settings(workspace, ".cursor/hooks.json"),
    claudeProjectConfigPath: settings(workspace, ".claude/settings.json"),
    claudeProjectLocalConfigPath: settings(workspace, ".claude/settings.local.json"),
  });
  const config = await loader.load();
  const ran = [];
  const executor = new globalThis.cursor.Executor(
    config, workspace, { cursor_version: "2.0.0", user_email: null }, { execute }, undefined, undefined,
    (execution) => ran.push({ source: execution.hookSource, status: execution.status, error: execution.errorClass }),
    { commandHookPayloadTransport: "legacy" },
  );
  const result = await executor.executeHookForStep(step, request);
  console.log(JSON.stringify({ result: result ?? null, ran }));
})();
