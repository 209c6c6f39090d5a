// The state of an object in a word, with a shape and a colour: from the cells that kubectl would print.

import { svg } from "./dom.js";

// tone: "ok", "wait", "bad", "going" (in deletion) or "plain"
const TONE_SHAPES = {
  ok: ["circle", { cx: 6, cy: 6, r: 4.5 }],
  wait: ["path", { d: "M6 1.2 11.3 10.6H.7z" }],
  bad: ["path", { d: "M6 .6 11.4 6 6 11.4.6 6z" }],
  going: ["path", { d: "M2 2l8 8M10 2l-8 8" }],
  plain: ["circle", { cx: 6, cy: 6, r: 3 }],
};
export const TONE_NAMES = { ok: "ready", wait: "not ready", bad: "failing", going: "being deleted", plain: "" };

export function toneIcon(tone) {
  const [tag, properties] = TONE_SHAPES[tone];
  return svg("svg", { class: `tone ${tone}`, viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, svg(tag, properties));
}

const GOOD = new Set(["Running", "Completed", "Succeeded", "Bound", "Active", "Available", "Ready", "Established", "Complete", "True", "Healthy", "Deployed", "Approved,Issued"]);
const WAITING_WORDS = new Set(["Pending", "ContainerCreating", "PodInitializing", "SchedulingGated", "Progressing", "Creating", "Suspended", "Unknown", "Provisioning"]);

// {tone, text} of a head, from its cells under their columns.
export function summaryOf(head, columns, cells) {
  if (head.deleting) return { tone: "going", text: "deleting" };
  if (!cells) return { tone: "plain", text: "" };
  const names = columns.map((column) => column.name.toLowerCase());
  const cell = (name) => {
    const index = names.indexOf(name);
    return index < 0 || cells[index] === null || cells[index] === undefined ? "" : String(cells[index]);
  };
  if (head.r === "replicasets.apps" || head.r === "daemonsets.apps" || head.r === "replicationcontrollers") return readyOf(cell("desired"), cell("ready"));
  const ready = /^(\d+)\/(\d+)$/.exec(cell("ready") || cell("completions"));
  const word = cell("status") || cell("phase") || cell("state");
  if (ready && !word) return readyOf(ready[2], ready[1]);
  if (head.r === "jobs.batch") return { tone: toneOf(word), text: `${word} ${cell("completions")}` };
  if (word) {
    const isPart = ready && word === "Running" && Number(ready[1]) < Number(ready[2]);
    return { tone: isPart ? "wait" : toneOf(word), text: ready && word === "Running" ? `${word} ${ready[0]}` : word };
  }
  const said = cell("ready") || cell("available") || cell("synced");
  if (said === "True" || said === "False" || said === "Unknown") return { tone: said === "True" ? "ok" : "wait", text: said === "True" ? "ready" : "not ready" };
  return { tone: "plain", text: "" };
}

function readyOf(wanted, ready) {
  if (wanted === "") return { tone: "plain", text: "" };
  const isOff = Number(wanted) === 0;
  return { tone: isOff ? "plain" : Number(ready) >= Number(wanted) ? "ok" : "wait", text: `${ready || 0}/${wanted}` };
}

function toneOf(word) {
  const first = word.split(",")[0];
  if (GOOD.has(word) || GOOD.has(first)) return "ok";
  if (WAITING_WORDS.has(word) || /^Init:\d|^Terminating|^Waiting/.test(word)) return "wait";
  return /^(?:Init:)?(?:Err|Crash|Image|Invalid|Fail|OOM|Evict|NotReady|Lost|Back|Create|Run|Node|Deadline|Degraded)/.test(word) ? "bad" : "wait";
}

// Map(uid -> {tone, text}) of heads.
export async function summaries(source, heads) {
  const states = await source.states(heads.map((head) => head.rev), { objects: false, cells: true });
  return new Map(heads.map((head) => [head.uid, summaryOf(head, source.columns(head.r), states.get(head.rev)?.cells)]));
}
