// What is joined to a record of the time line: its causes upwards and its effects downwards.

import { capitalised } from "./cause.js";
import { duration } from "./dom.js";

const MOST_JOINS = 400;
const DEEPEST_JOIN = 12;

// Returns {edges: [{from, to}], records: Set}, each edge from a cause to its effect.
export function joinsOf(recording, record) {
  const edges = [];
  const records = new Set([record]);

  function walk(direct, edge) {
    let front = [record];
    for (let depth = 0; depth < DEEPEST_JOIN && front.length; depth += 1) {
      const reached = [];
      for (const here of front) {
        for (const there of direct(here)) {
          if (edges.length >= MOST_JOINS) return;
          edges.push(edge(here, there));
          if (!records.has(there)) reached.push(there);
          records.add(there);
        }
      }
      front = reached;
    }
  }

  walk((each) => recording.causesOf(each), (here, there) => ({ from: there, to: here }));
  walk((each) => recording.effectsOf(each), (here, there) => ({ from: here, to: there }));
  return { edges, records };
}

function objectName(record) {
  return [record.r || record.path, record.ns, record.name].filter(Boolean).join("/");
}

// The changes of the state that select a record's details, or null if it has none of its own.
export function selectionOf(record) {
  if (record.t === "request") return { request: record.seq };
  if (record.t === "state") {
    return { object: { r: record.r, ns: record.ns, name: record.name }, request: null, moment: record.op === "delete" ? record.rev - 1 : record.rev };
  }
  return null;
}

const FAULT_CHANGES = { add: "added", remove: "removed" };
const CLOCK_CHANGES = { stop: "stopped", start: "started", advance: "advanced", jump: "set" };
const OPERATIONS = { create: "created", update: "changed", delete: "deleted", base: "existed before" };

function fieldsText(fault) {
  return Object.entries(fault ?? {}).map(([name, value]) => `${name}=${value}`).join(" ");
}

// A few words for a fault or a change of the clock, beside its mark.
export function shortText(record) {
  if (record.t === "fault") return record.change === "remove" ? "removed" : fieldsText(record.fault);
  if (record.t === "clock") return record.seconds ? `${record.change} ${duration(Math.abs(record.seconds))}${record.seconds < 0 ? " back" : ""}` : record.change;
  if (record.t === "controller") return `${record.name}: ${record.mode}`;
  return "restored";
}

// A record in one sentence, for the line below the lanes and for screen readers.
export function sentenceOf(recording, record) {
  switch (record.t) {
    case "request": {
      const outcome = record.status >= 400 || !record.status ? `refused with ${record.status || "no answer"} ${record.reason ?? ""}`.trim() : record.status;
      const target = `${objectName(record)}${record.sub ? `/${record.sub}` : ""}`;
      const details = [record.dry && "dry run", record.fault && "struck by a fault", record.changed && `wrote revision ${record.rev}`].filter(Boolean);
      return `${capitalised(record.client)} ${record.verb} ${target}: ${[outcome, ...details].join(", ")}${record.message ? `. ${record.message}` : ""}`;
    }
    case "state":
      return `${objectName(record)} ${OPERATIONS[record.op] ?? record.op} at revision ${record.rev}`;
    case "delivery": {
      const watch = recording.watches.get(record.seq);
      return `Revision ${record.rev.join(", ")} sent to the watch of ${watch ? `${watch.request.client} on ${objectName(watch.request)}` : "a client"}`;
    }
    case "reconcile":
      return `${record.controller} reconciled ${record.key} in ${Number(record.ms.toPrecision(3))} ms`
        + `${record.error ? `, with the error ${record.error}` : ""}`;
    case "fault": {
      const fields = fieldsText(record.fault);
      return `Fault ${record.id} ${FAULT_CHANGES[record.change]}${fields ? `: ${fields}` : ""}`;
    }
    case "clock":
      return `Clock ${CLOCK_CHANGES[record.change]}${record.seconds ? ` by ${record.seconds} s` : ""}`;
    case "controller":
      return `${record.name} set to ${record.mode}`;
    case "restore":
      return `A snapshot was restored as revision ${record.revision}`;
    default:
      return record.t;
  }
}
