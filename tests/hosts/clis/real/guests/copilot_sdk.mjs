// Runs the Copilot SDK whole, once: node copilot_sdk.mjs PACKAGE WORKSPACE. A variable names the model's address.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , place, workspace] = process.argv;
const { CopilotClient, approveAll } = await import(
  pathToFileURL(join(place, "node_modules/@github/copilot-sdk/dist/index.js")).href
);
const client = new CopilotClient({ workingDirectory: workspace });
await client.start();
const session = await client.createSession({
  model: "claude-sonnet-4.5",
  workingDirectory: workspace,
  enableConfigDiscovery: true,
  enableFileHooks: true,
  onPermissionRequest: approveAll,
  provider: { type: "openai", baseUrl: process.env.COPILOT_PROVIDER_BASE_URL, apiKey: "none", wireApi: "completions" },
});
await session.sendAndWait({ prompt: "do it" }, 60_000);
await session.disconnect();
await client.stop();
