// The page's selection, kept in the URL's hash: so a link to a moment and a selection is just the URL.
//
// view     timeline, objects, graph, why, levers or share
// moment   a revision, or null for now
// object   {r, ns, name} or null; `tab`: the tab of its details
// request  the seq of a request, or null
// panel    the details that are open: object, request, changes or ""
// kind     the kind whose objects are listed, as resource.group; `sort`: the column by which, with "-" before it in descending order
// filter   the filter of the objects; `query`: that of the time line; `ns`: the namespace of the objects and the graph
// range    [revision, revision], two moments that are compared, or null
// axis     "real" or "cluster"

import { on } from "./dom.js";

const EMPTY = {
  view: "timeline", moment: null, object: null, tab: "", request: null, panel: "", kind: "", sort: "", filter: "", query: "", ns: "",
  range: null, axis: "real",
};

export function objectText(object) {
  return [object.r, object.ns ?? "", object.name].join("/");
}

const WRITERS = { object: objectText, range: (range) => range.join("-") };

const READERS = {
  moment: revisionNumber,
  request: wholeNumber,
  object(value) {
    const [r, ns, ...name] = value.split("/");
    return r && name.length ? { r, ns, name: name.join("/") } : null;
  },
  range(value) {
    const numbers = value.split("-").map(revisionNumber);
    return numbers.length === 2 && !numbers.includes(null) ? numbers : null;
  },
};

// States after a restore share a revision: their numbers have a fraction.
function revisionNumber(value) {
  return /^\d{1,15}(\.\d{1,6})?$/.test(value) ? Number(value) : null;
}

function wholeNumber(value) {
  return /^\d{1,15}$/.test(value) ? Number(value) : null;
}

function readHash(hash) {
  const state = { ...EMPTY };
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (Object.hasOwn(EMPTY, name)) state[name] = READERS[name] ? READERS[name](value) : value;
  }
  return state;
}

export function hashOf(state) {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === null || value === "" || (name === "axis" && value === "real")) continue;
    values.set(name, WRITERS[name] ? WRITERS[name](value) : String(value));
  }
  return `#${values.toString().replaceAll("%2F", "/")}`;
}

// Selecting something opens its details; closing the details keeps nothing selected.
function withPanel(changes) {
  if ("panel" in changes) return changes.panel === "" ? { object: null, request: null, range: null, ...changes } : changes;
  const selected = ["request", "object", "range"].find((name) => changes[name]);
  return selected ? { ...changes, panel: selected === "range" ? "changes" : selected } : changes;
}

// Returns { get(), set(changes, {replace}), subscribe(listener), link(changes) }. Listeners get (state, names of what changed).
export function pageState() {
  let current = readHash(location.hash);
  const listeners = new Set();

  function take(next) {
    const changed = Object.keys(EMPTY).filter((name) => JSON.stringify(next[name]) !== JSON.stringify(current[name]));
    current = next;
    if (changed.length) for (const listener of [...listeners]) listener(current, changed);
    return changed.length > 0;
  }

  on(window, "hashchange", () => take(readHash(location.hash)));
  return {
    get: () => current,
    // `replace`: without an entry in the browser's history, e.g. while scrubbing.
    set(changes, { replace = false } = {}) {
      const next = { ...current, ...withPanel(changes) };
      const hash = hashOf(next);
      if (take(next)) history[replace ? "replaceState" : "pushState"](null, "", hash);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    link: (changes) => hashOf({ ...current, ...withPanel(changes) }),
  };
}
