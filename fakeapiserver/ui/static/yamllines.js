// Values as lines of YAML, in the order of kubectl, each line with its path and the managers that own it. Pure.

import { fieldOwners, idsOf, rootSets, setsOfField, setsOfItem } from "./fields.js";

const FIRST_KEYS = ["apiVersion", "kind", "metadata", "spec", "data", "status"];
const PLAIN = /^(?:[^\s"'`&*!|<=>%@{}[\],?#:-]|-(?=[^\s-]))(?:[^\n\r\t]*\S)?$/;
const NOT_TEXT = /^(?:~|null|true|false|yes|no|on|off|y|n|[-+]?[0-9._]+(?:e[-+]?[0-9]+)?|0x[0-9a-f]+|0o[0-7]+|[-+]?\.(?:inf|nan)|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|-|---.*|=)$/i;

export function yamlScalar(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value !== "string") return String(value);
  if (value === "") return '""';
  return PLAIN.test(value) && !/: |:$| #/.test(value) && !NOT_TEXT.test(value) ? value : JSON.stringify(value);
}

function isBranch(value) {
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

function sortedKeys(value, isRoot) {
  const keys = Object.keys(value);
  if (!isRoot) return keys;
  const rank = (key) => (FIRST_KEYS.indexOf(key) + 1 || (FIRST_KEYS.length + 0.5 - (key === "status" ? 0 : 1))) ;
  return keys.map((key, index) => ({ key, index })).sort((a, b) => rank(a.key) - rank(b.key) || a.index - b.index).map((one) => one.key);
}

// Lines {depth, dash, key, value, block, path, owners, isBranch}: `depth` in steps of two spaces, `dash` how many "- " come before the key,
// `value` null where the lines below hold it, `block` true for a line of a text of several lines.
export function yamlLines(object, { without = [["metadata", "managedFields"]] } = {}) {
  const lines = [];
  const hidden = new Set(without.map((path) => path.join("\n")));
  branch(object, 0, 0, [], rootSets(fieldOwners(object)));
  return lines;

  function branch(value, depth, dashes, path, sets) {
    const isList = Array.isArray(value);
    let first = dashes;
    for (const key of isList ? value.keys() : sortedKeys(value, path.length === 0)) {
      const place = [...path, key];
      if (hidden.has(place.join("\n"))) continue;
      const item = value[key];
      const own = isList ? setsOfItem(sets, item, key) : setsOfField(sets, key);
      if (isList) entry(item, depth, first, place, own);
      else field(key, item, depth, first, place, own);
      first = 0;
    }
  }

  function entry(item, depth, dashes, path, sets) {
    if (isBranch(item)) branch(item, depth + 1, dashes + 1, path, sets);
    else leaf(null, item, depth + 1, dashes + 1, path, sets);
  }

  function field(key, value, depth, dashes, path, sets) {
    if (!isBranch(value)) return leaf(key, value, depth, dashes, path, sets);
    lines.push({ depth, dash: dashes, key: yamlScalar(key), value: null, block: false, path, owners: idsOf(sets), isBranch: true });
    // kubectl doesn't indent the lists of a field.
    return branch(value, Array.isArray(value) ? depth : depth + 1, 0, path, sets);
  }

  function leaf(key, value, depth, dashes, path, sets) {
    const line = { depth, dash: dashes, key: key === null ? null : yamlScalar(key), block: false, path, owners: idsOf(sets), isBranch: false };
    if (typeof value === "string" && value.includes("\n") && !/^\s|\t|\r/.test(value)) {
      const texts = value.split("\n");
      const sign = texts.at(-1) === "" ? "|" : "|-";
      if (sign === "|") texts.pop();
      lines.push({ ...line, value: sign });
      for (const text of texts) lines.push({ ...line, dash: 0, key: null, depth: depth + 1, value: text, block: true });
      return;
    }
    lines.push({ ...line, value: Array.isArray(value) ? "[]" : value !== null && typeof value === "object" ? "{}" : yamlScalar(value) });
  }
}

export function yamlLineText(line) {
  const indent = "  ".repeat(line.depth - line.dash) + "- ".repeat(line.dash);
  if (line.key === null) return `${indent}${line.value}`;
  return line.value === null ? `${indent}${line.key}:` : `${indent}${line.key}: ${line.value}`;
}

export function toYaml(value) {
  if (!isBranch(value)) return yamlScalar(value);
  return yamlLines(value, { without: [] }).map(yamlLineText).join("\n");
}
