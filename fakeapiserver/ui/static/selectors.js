// Label selectors, and the filter of the tables: label selectors, path=value and texts. Pure.

// Whether labels match a LabelSelector of the API ({matchLabels, matchExpressions}); null matches nothing, {} everything.
export function matchesSelector(selector, labels = {}) {
  if (!selector) return false;
  return Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
    (selector.matchExpressions ?? []).every((one) => matchesExpression(one, labels));
}

function matchesExpression({ key, operator, values = [] }, labels) {
  const has = Object.hasOwn(labels, key);
  switch (operator) {
    case "In": return has && values.includes(labels[key]);
    case "NotIn": return !has || !values.includes(labels[key]);
    case "Exists": return has;
    case "DoesNotExist": return !has;
    case "Gt": return has && Number(labels[key]) > Number(values[0]);
    case "Lt": return has && Number(labels[key]) < Number(values[0]);
    default: return false;
  }
}

// Whether labels have all pairs of a map, as the selectors of services; an empty map matches nothing.
export function matchesMap(map, labels = {}) {
  const pairs = Object.entries(map ?? {});
  return pairs.length > 0 && pairs.every(([key, value]) => labels[key] === value);
}

export function selectorText(selector) {
  const pairs = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const rest = (selector?.matchExpressions ?? []).map(({ key, operator, values }) =>
    operator === "Exists" ? key : operator === "DoesNotExist" ? `!${key}` : `${key} ${operator.toLowerCase()} (${(values ?? []).join(", ")})`);
  return [...pairs, ...rest].join(",") || "everything";
}

// Words of a filter, with quotes for blanks: app=web status.phase=Running "a text" -l 'a in (b, c)'.
function words(text) {
  return [...text.matchAll(/(?:[^\s"'()]|"[^"]*"?|'[^']*'?|\([^)]*\)?)+/g)].map((match) => match[0].replace(/["']/g, ""));
}

// A filter {labels: [requirement], fields: [{path, operator, value}], texts: [lower case]}. What is a path of the object and what a label:
// with `metadata.`, `spec.`, `status.` or `.` at the beginning it is a path; anything else with =, !=, in or notin is a label.
export function parseFilter(text) {
  const filter = { labels: [], fields: [], texts: [] };
  const list = words(text.replace(/\b(in|notin)\s+\(/g, "$1(").replace(/(\S)\s+(in|notin)\(/g, "$1 $2(").replace(/(\S+) ((?:not)?in\([^)]*\))/g, '"$1 $2"'));
  for (const word of list) {
    if (word === "-l" || word === "--selector" || word === "--field-selector") continue;
    for (const part of word.includes("(") ? [word] : word.split(",")) addRequirement(filter, part);
  }
  return filter;
}

function addRequirement(filter, word) {
  const set = /^(\S+) (in|notin)\((.*)\)$/.exec(word);
  if (set) {
    const values = set[3].split(",").map((value) => value.trim());
    filter.labels.push({ key: set[1], operator: set[2] === "in" ? "In" : "NotIn", values });
    return;
  }
  const pair = /^([^=!<>]+?)(!=|==|=)(.*)$/.exec(word);
  if (pair) {
    const [, key, operator, value] = pair;
    if (/^(\.|metadata\.|spec\.|status\.|data\.|involvedObject\.|type$|reason$)/.test(key)) {
      filter.fields.push({ path: key.replace(/^\./, ""), operator: operator === "!=" ? "!=" : "=", value });
    } else filter.labels.push({ key, operator: operator === "!=" ? "NotIn" : "In", values: [value] });
    return;
  }
  if (/^![\w./-]+$/.test(word)) filter.labels.push({ key: word.slice(1), operator: "DoesNotExist", values: [] });
  else if (word) filter.texts.push(word.toLowerCase());
}

export function isEmptyFilter(filter) {
  return !filter.labels.length && !filter.fields.length && !filter.texts.length;
}

// Fields of which the whole object must be known; name and namespace are in the heads.
export function needsObjects(filter) {
  return filter.fields.some((field) => !HEAD_FIELDS[field.path]);
}

const HEAD_FIELDS = { "metadata.name": (head) => head.name, "metadata.namespace": (head) => head.ns, "metadata.uid": (head) => head.uid };

// Whether a row matches: its head, its cells (or null) and its object (or null).
export function matchesFilter(filter, head, cells, object) {
  const labels = head.labels ?? {};
  return filter.labels.every((one) => matchesExpression(one, labels)) &&
    filter.fields.every((field) => matchesField(field, head, object)) &&
    filter.texts.every((text) => hasText(text, head, cells));
}

function hasText(text, head, cells) {
  return head.name.toLowerCase().includes(text) || head.ns.toLowerCase().includes(text) ||
    (cells ?? []).some((cell) => String(cell).toLowerCase().includes(text));
}

function matchesField({ path, operator, value }, head, object) {
  const values = HEAD_FIELDS[path] ? [HEAD_FIELDS[path](head)] : valuesAt(object, path);
  const isThere = values.some((one) => String(one) === value) || (values.length === 0 && value === "");
  return operator === "=" ? isThere : !isThere;
}

// All values at a path; lists are entered: spec.containers.image has one for each container.
export function valuesAt(object, path) {
  let values = [object];
  let rest = path;
  while (rest) {
    const step = /^(?:\["([^"]*)"\]|([^.[\]]+)|\[(\d+)\])\.?/.exec(rest);
    if (!step) return [];
    rest = rest.slice(step[0].length);
    const name = step[1] ?? step[2] ?? step[3];
    values = values.flatMap((value) => (Array.isArray(value) && !/^\d+$/.test(name) ? value : [value]))
      .map((value) => value?.[name]).filter((value) => value !== undefined && value !== null);
  }
  return values.flat();
}
