// managedFields: which manager owns which field of an object (upstream: sigs.k8s.io/structured-merge-diff, fieldpath).

// Entries of metadata.managedFields as owners: {id, manager, operation, time, subresource, fields}; `time` in seconds since 1970 or null.
export function fieldOwners(object) {
  const entries = object?.metadata?.managedFields ?? [];
  return entries.map((entry, id) => ({
    id,
    manager: entry.manager || "unknown",
    operation: entry.operation || "Update",
    subresource: entry.subresource || "",
    time: entry.time ? Date.parse(entry.time) / 1000 : null,
    fields: entry.fieldsV1 ?? {},
  }));
}

// A set is {id, node}: the part of an owner's fieldsV1 at one place of the object. Inherited sets own everything below them.
export function rootSets(owners) {
  return owners.map((owner) => ({ id: owner.id, node: owner.fields, inherited: false }));
}

function isLeaf(node) {
  return Object.keys(node).length === 0;
}

// Ids of those who own the value at this place itself.
export function idsOf(sets) {
  return sets.filter((set) => set.inherited || isLeaf(set.node) || "." in set.node).map((set) => set.id);
}

function below(sets, child) {
  const found = [];
  for (const set of sets) {
    if (set.inherited || isLeaf(set.node)) {
      found.push({ id: set.id, node: {}, inherited: true });
      continue;
    }
    const node = child(set.node);
    if (node) found.push({ id: set.id, node, inherited: false });
  }
  return found;
}

export function setsOfField(sets, name) {
  return below(sets, (node) => node[`f:${name}`]);
}

// Items of lists are named by their keys (`k:{"name":"web"}`), by their value (`v:"finalizer"`) or by their index (`i:0`).
export function setsOfItem(sets, item, index) {
  return below(sets, (node) => {
    if (node[`i:${index}`]) return node[`i:${index}`];
    for (const step of Object.keys(node)) {
      if (step.startsWith("k:") && hasKeys(item, step.slice(2))) return node[step];
      if (step.startsWith("v:") && sameText(step.slice(2), item)) return node[step];
    }
    return undefined;
  });
}

function parsedStep(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function hasKeys(item, text) {
  const keys = parsedStep(text);
  if (!keys || typeof keys !== "object" || item === null || typeof item !== "object") return false;
  // A default that is not written (e.g. protocol: TCP) still is part of the key.
  return Object.entries(keys).every(([key, value]) => item[key] === undefined || item[key] === value) &&
    Object.keys(keys).some((key) => key in item);
}

function sameText(text, item) {
  return JSON.stringify(parsedStep(text)) === JSON.stringify(item);
}
