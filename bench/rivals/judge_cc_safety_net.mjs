// Judges one command per line of JSON, and says what came out and how long it took.
import { createInterface } from "node:readline";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const found = resolve(process.argv[2], "node_modules/cc-safety-net/dist/api.js");
const { checkCommand } = await import(pathToFileURL(found));
for await (const line of createInterface({ input: process.stdin })) {
  const began = process.hrtime.bigint();
  let verdict = "broken";
  try {
    verdict = checkCommand({ command: JSON.parse(line), cwd: process.cwd() }).kind === "deny" ? "deny" : "pass";
  } catch {}
  console.log(JSON.stringify([verdict, Number(process.hrtime.bigint() - began) / 1000]));
}
