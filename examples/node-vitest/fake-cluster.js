// Starts `fakeapiserver serve` for tests. Copy this file; it needs Node 20 alone.
//
// From FakeCluster.start() on, KUBECONFIG leads the clients of this process to the fake cluster, and after close() to no cluster: never to
// ~/.kube/config. The server ends with this process, also if it is killed.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const START_MILLISECONDS = 60_000;
const STOP_MILLISECONDS = 10_000;

export class FakeCluster {
  #process;
  #ended;

  constructor(process, ended) {
    this.#process = process;
    this.#ended = ended;
  }

  /**
   * Runs the server on a free port and resolves when it is ready. The flags are those of `fakeapiserver serve`, such as "--nodes=1".
   * The variable FAKEAPISERVER names another command than the fakeapiserver on the PATH.
   */
  static async start(...flags) {
    leadNowhere();
    const command = process.env.FAKEAPISERVER || "fakeapiserver";
    // its standard input is a pipe, which the system closes when this process ends
    const child = spawn(command, ["serve", "--output=json", "--stop-with-stdin", ...flags], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = new Promise((resolve) => child.once("close", resolve));
    const cluster = new FakeCluster(child, ended);
    try {
      await cluster.#read(await firstLine(child, command));
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
    process.env.KUBECONFIG = cluster.kubeconfig;
    return cluster;
  }

  async #read(line) {
    const facts = JSON.parse(line);
    /** The server's URL. */
    this.url = checkLoopback(facts.url);
    /** The path of a kubeconfig. */
    this.kubeconfig = facts.kubeconfig;
    /** A bearer token. */
    this.token = await readFile(facts.tokenFile, "utf8");
    /** The authority's certificate, in PEM. */
    this.ca = await readFile(facts.caFile, "utf8");
  }

  /** Moves the server's clock, such as by "1h": what is due meanwhile happens, each thing at its time. */
  async advance(duration) {
    await this.#control("PUT", "clock", { advance: duration });
  }

  /** Resolves when the server's controllers are at rest. */
  async settle() {
    await this.#control("POST", "settle");
  }

  /** Lets requests fail: { verb: "update", resource: "configmaps", status: 409, times: 1 }; docs/faults.md has all fields. */
  async fault(fault) {
    await this.#control("POST", "faults", fault);
  }

  /** Stops the server. KUBECONFIG goes on naming a file that is gone. */
  async close() {
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MILLISECONDS);
    this.#process.stdin.end();
    await this.#ended;
    clearTimeout(timer);
  }

  #control(method, path, body) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}/fakeapiserver/${path}`, { method, headers, ca: this.ca, agent: false }, async (response) => {
        let answer = "";
        for await (const part of response) answer += part;
        if (response.statusCode < 300) resolve(answer);
        else reject(new Error(`${method} ${path}: ${response.statusCode}: ${answer}`));
      });
      sent.on("error", reject);
      sent.end(body === undefined ? "" : JSON.stringify(body));
    });
  }
}

function firstLine(child, command) {
  const install = `there is no command ${command}: pip install fakeapiserver, or name it in FAKEAPISERVER`;
  return new Promise((resolve, reject) => {
    const fail = (message) => reject(new Error(message));
    const timer = setTimeout(() => fail(`fakeapiserver serve isn't ready after ${START_MILLISECONDS} ms`), START_MILLISECONDS);
    child.once("error", (error) => fail(error.code === "ENOENT" ? install : error.message));
    const lines = createInterface({ input: child.stdout });
    lines.once("line", resolve);
    lines.once("close", () => fail("fakeapiserver serve did not start; its message is on standard error"));
    child.once("close", () => clearTimeout(timer));
    lines.once("line", () => clearTimeout(timer));
  });
}

/** Keeps clients from a real cluster: also if the server doesn't start. */
function leadNowhere() {
  delete process.env.KUBERNETES_SERVICE_HOST;
  delete process.env.KUBERNETES_SERVICE_PORT;
  process.env.KUBECONFIG = join(tmpdir(), "no-cluster-outside-of-FakeCluster");
}

/** Returns the URL, or throws an error if its server isn't on this machine. */
export function checkLoopback(url) {
  const host = new URL(url).hostname;
  if (!/^127\.[0-9]+\.[0-9]+\.[0-9]+$/.test(host) && host !== "[::1]") {
    throw new Error(`${url} is not on this machine: FakeCluster uses servers on loopback addresses only`);
  }
  return url;
}
