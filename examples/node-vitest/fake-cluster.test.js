import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { afterEach, expect, test, vi } from "vitest";
import { FakeCluster, checkLoopback } from "./fake-cluster.js";

afterEach(() => vi.unstubAllEnvs());

test("is used and stopped", async () => {
  const cluster = await FakeCluster.start();
  await cluster.settle();
  await cluster.advance("1h");
  await cluster.fault({ verb: "get", status: 429, times: 1 });
  await expect(cluster.fault({ verb: "fly" })).rejects.toThrow("fly");
  expect(process.env.KUBECONFIG).toBe(cluster.kubeconfig);
  expect(cluster.token).not.toBe("");
  await cluster.close();
  await gone(cluster.url);
  expect(existsSync(process.env.KUBECONFIG)).toBe(false);
});

test("ends with a process that is killed", async () => {
  const helper = new URL("./fake-cluster.js", import.meta.url).href;
  const program = `
    import { FakeCluster } from ${JSON.stringify(helper)};
    console.log((await FakeCluster.start("--controllers=none")).url);
    setInterval(() => {}, 1000);`;
  const victim = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve) => createInterface({ input: victim.stdout }).once("line", resolve));
  victim.kill("SIGKILL");
  await gone(url);
});

test("says what to install", async () => {
  vi.stubEnv("FAKEAPISERVER", "no-such-command");
  await expect(FakeCluster.start()).rejects.toThrow(/^[^\n]*pip install fakeapiserver[^\n]*$/);
  expect(process.env.KUBECONFIG).toContain("no-cluster");
});

test("refuses other machines", () => {
  expect(() => checkLoopback("https://prod.example.com:6443")).toThrow("is not on this machine");
  expect(checkLoopback("https://127.0.0.1:6443")).toBe("https://127.0.0.1:6443");
});

async function gone(url) {
  const { hostname, port } = new URL(url);
  const isThere = () =>
    new Promise((resolve) => {
      const socket = connect(port, hostname);
      socket.once("connect", () => resolve(!!socket.destroy()));
      socket.once("error", () => resolve(false));
    });
  await vi.waitUntil(async () => !(await isThere()), { timeout: 60_000, interval: 100 });
}
