// Differences between two states of an object: by field, and as lines of YAML. Pure, but for the two that draw (diffview.js).

import { toYaml } from "./yamllines.js";

// Fields that change with every write.
const NOISE = new Set(["metadata.managedFields", "metadata.resourceVersion"]);
// Upstream's usual keys of lists of objects, the first that all items have and that distinguishes them.
const LIST_KEYS = ["name", "type", "uid", "key", "containerPort", "port", "ip", "mountPath", "topologyKey"];

function isObject(value) {
  return value !== null && typeof value === "object";
}

export function isSame(a, b) {
  if (a === b) return true;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && isSame(a[key], b[key]));
}

function keyOfItems(...lists) {
  const items = lists.flat();
  if (!items.length || !items.every((item) => isObject(item) && !Array.isArray(item))) return null;
  return LIST_KEYS.find((key) => lists.every((list) => {
    const values = list.map((item) => item[key]);
    return values.every((value) => value !== undefined && !isObject(value)) && new Set(values).size === values.length;
  })) ?? null;
}

function joined(path, step) {
  if (step.startsWith("[")) return path + step;
  const name = /^[A-Za-z_][\w-]*$/.test(step) ? step : `["${step}"]`;
  return name.startsWith("[") || !path ? path + name : `${path}.${name}`;
}

// Changes {path, op: "add" | "remove" | "change", before, after} from one state to the next, managedFields and resourceVersion apart.
export function objectChanges(before, after) {
  const changes = [];
  compare("", before ?? undefined, after ?? undefined);
  return changes;

  function compare(path, a, b) {
    if (NOISE.has(path) || isSame(a, b)) return;
    if (isObject(a) && isObject(b) && Array.isArray(a) === Array.isArray(b)) {
      return Array.isArray(a) ? lists(path, a, b) : maps(path, a, b);
    }
    const op = a === undefined ? "add" : b === undefined ? "remove" : "change";
    changes.push({ path: path || "(object)", op, before: a, after: b });
  }

  function maps(path, a, b) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) compare(joined(path, key), a[key], b[key]);
  }

  function lists(path, a, b) {
    const key = keyOfItems(a, b);
    if (key === null) {
      if ([...a, ...b].some(isObject) && a.length === b.length) a.forEach((item, index) => compare(joined(path, `[${index}]`), item, b[index]));
      else changes.push({ path, op: "change", before: a, after: b });
      return;
    }
    const names = new Set([...a, ...b].map((item) => item[key]));
    for (const name of names) {
      const is = (item) => item[key] === name;
      compare(joined(path, `[${key}=${name}]`), a.find(is), b.find(is));
    }
    const order = (list) => list.map((item) => item[key]);
    if (changes.length === 0 && !isSame(order(a), order(b))) changes.push({ path, op: "change", before: order(a), after: order(b) });
  }
}

// Lines {op: " " | "-" | "+", text} that make `after` of `before`, the shortest such list (Myers, "An O(ND) difference algorithm").
export function lineDiff(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((text) => ({ op: " ", text }));
  const a = before.slice(start, before.length - end);
  const b = after.slice(start, after.length - end);
  return [...same(before.slice(0, start)), ...shortestEdit(a, b), ...same(end ? before.slice(-end) : [])];
}

// Beyond this number of edits the middle is shown as replaced as a whole.
const MOST_EDITS = 2000;

function shortestEdit(a, b) {
  const replaced = [...a.map((text) => ({ op: "-", text })), ...b.map((text) => ({ op: "+", text }))];
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const trace = [];
  const furthest = new Map([[1, 0]]);
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(new Map(furthest));
    for (let k = -edits; k <= edits; k += 2) {
      const isDown = k === -edits || (k !== edits && furthest.get(k - 1) < furthest.get(k + 1));
      let x = isDown ? furthest.get(k + 1) : furthest.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      furthest.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace, edits);
    }
  }
  return replaced;
}

function walkBack(a, b, trace, edits) {
  const lines = [];
  let x = a.length;
  let y = b.length;
  for (let step = edits; step > 0; step -= 1) {
    const furthest = trace[step];
    const k = x - y;
    const isDown = k === -step || (k !== step && furthest.get(k - 1) < furthest.get(k + 1));
    const previous = isDown ? k + 1 : k - 1;
    const fromX = furthest.get(previous);
    const fromY = fromX - previous;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      lines.push({ op: " ", text: a[x - 1] });
      x -= 1;
      y -= 1;
    }
    if (isDown) lines.push({ op: "+", text: b[y -= 1] });
    else lines.push({ op: "-", text: a[x -= 1] });
  }
  while (x > 0) lines.push({ op: " ", text: a[x -= 1] });
  return lines.reverse();
}

function withoutNoise(object) {
  if (!object?.metadata) return object;
  const { managedFields: _fields, resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

// The YAML of two states as lines {op, text}; equal lines further than `context` from a change become one {op: "…", count}.
export function yamlDiff(before, after, context = 3) {
  const lines = (object) => (object ? toYaml(withoutNoise(object)).split("\n") : []);
  return folded(lineDiff(lines(before), lines(after)), context);
}

export function folded(lines, context) {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.op !== " ") near.fill(1, Math.max(0, index - context), index + context + 1);
  });
  const shown = [];
  for (const [index, line] of lines.entries()) {
    if (near[index]) shown.push(line);
    else if (shown.at(-1)?.op === "…") shown.at(-1).count += 1;
    else shown.push({ op: "…", text: "", count: 1 });
  }
  return shown;
}

// Parts {op, text} of one changed text, so that the words that differ can be marked: the common beginning and end are equal.
export function wordDiff(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return { head: before.slice(0, start), before: before.slice(start, before.length - end),
    after: after.slice(start, after.length - end), tail: end ? before.slice(-end) : "" };
}
