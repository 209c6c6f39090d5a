// The graph as a list: each object with those that it leads to, for screen readers, small screens and those who rather read.

import { objectAnchor } from "./causeview.js";
import { h } from "./dom.js";
import { TONE_NAMES, toneIcon } from "./summary.js";

export function graphList({ nodes, edges }, app, words, toggle) {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const out = new Map();
  for (const edge of edges) {
    if (!out.has(edge.from)) out.set(edge.from, []);
    out.get(edge.from).push(edge);
  }
  const name = (node) => {
    if (node.members) return h("button", { class: "button small", on: { click: () => toggle(node.key) } }, node.name);
    return node.head ? objectAnchor(app, node) : h("span", { class: "danger-text" }, node.name);
  };
  const state = (node) => [toneIcon(node.tone), h("span", { class: "sr" }, TONE_NAMES[node.tone]), h("span", { class: "muted" }, app.recording.kind(node.r).kind), name(node),
    node.text ? h("span", { class: "muted" }, node.text) : null];
  const sorted = [...nodes].sort((a, b) => (out.get(b.key)?.length ?? 0 ? 1 : 0) - (out.get(a.key)?.length ?? 0 ? 1 : 0) || a.r.localeCompare(b.r) || a.name.localeCompare(b.name));
  return h("div", { class: "graph-list" }, h("ul", {}, sorted.map((node) => h("li", {}, h("span", { class: "relative" }, state(node)),
    out.has(node.key) ? h("ul", { class: "edges" }, out.get(node.key).filter((edge) => byKey.has(edge.to)).map((edge) => h("li", { class: "relative" }, words[edge.kind],
      state(byKey.get(edge.to)), edge.label ? h("span", { class: "muted" }, `(${edge.label})`) : null))) : null))));
}
