// Draws differences: as a list of changed fields, and as lines of YAML.

import { objectChanges, wordDiff, yamlDiff } from "./diff.js";
import { h } from "./dom.js";
import { toYaml } from "./yamllines.js";

const LONGEST = 200;

function valueText(value) {
  if (value === undefined) return "";
  const text = value !== null && typeof value === "object" ? JSON.stringify(value) : toYaml(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

// The changed fields of two states: path, before → after. `most` fields at most, then their number.
export function changesView(before, after, most = 12) {
  const changes = objectChanges(before, after);
  if (!changes.length) return h("p", { class: "muted" }, "Nothing but its version changed.");
  const items = changes.slice(0, most).map(changeView);
  if (changes.length > most) items.push(h("li", { class: "muted" }, `and ${changes.length - most} more fields`));
  return h("ul", { class: "changes" }, items);
}

const CHANGE_WORDS = { add: "added", remove: "removed", change: "changed" };

function changeView({ path, op, before, after }) {
  const values = op === "change" ? changedValues(valueText(before), valueText(after))
    : [h(op === "add" ? "ins" : "del", {}, valueText(op === "add" ? after : before))];
  return h("li", {}, h("span", { class: `op ${op}`, title: CHANGE_WORDS[op] }, { add: "+", remove: "−", change: "~" }[op], h("span", { class: "sr" }, ` ${CHANGE_WORDS[op]} `)),
    h("span", { class: "path mono" }, path), " ", h("span", { class: "values mono" }, values));
}

function changedValues(before, after) {
  const { head, before: old, after: now, tail } = wordDiff(before, after);
  const isShort = before.length < 24 && after.length < 24;
  if (isShort || head.length + tail.length < 8) return [h("del", {}, before), " → ", h("ins", {}, after)];
  return [head, h("del", {}, old), h("ins", {}, now), tail];
}

// The YAML of two states, line by line; either may be null.
export function diffView(before, after) {
  const lines = yamlDiff(before, after);
  return h("div", { class: "diff code", role: "figure", "aria-label": "Differences of the YAML" }, lines.map((line) => (line.op === "…"
    ? h("div", { class: "diff-fold muted" }, `${line.count} equal ${line.count === 1 ? "line" : "lines"}`)
    : h("div", { class: `diff-line ${{ "+": "add", "-": "remove", " ": "same" }[line.op]}` },
      h("span", { class: "diff-op", "aria-hidden": "true" }, line.op), line.op === " " ? null : h("span", { class: "sr" }, line.op === "+" ? "added: " : "removed: "), line.text))));
}

// Steps of admission ({plugin, kind, patch}) as lists of what each changed.
export function admissionView(steps) {
  return h("ol", { class: "admission" }, steps.map((step) => h("li", {},
    h("p", {}, h("strong", {}, step.plugin), " ", h("span", { class: "badge" }, step.kind)),
    (step.patch ?? []).length ? h("ul", { class: "changes" }, step.patch.map((change) => h("li", {},
      h("span", { class: `op ${change.op === "remove" ? "remove" : change.op === "add" ? "add" : "change"}` }, { add: "+", remove: "−" }[change.op] ?? "~"),
      h("span", { class: "path mono" }, pointerPath(change.path)), " ",
      change.op === "remove" ? null : h("ins", { class: "mono" }, valueText(change.value))))) : h("p", { class: "muted" }, "changed nothing"))));
}

// A JSON pointer as a path: /spec/containers/0/image -> spec.containers[0].image
function pointerPath(pointer) {
  return pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step, index) => (/^\d+$/.test(step) ? `[${step}]` : /^[\w-]+$/.test(step) ? `${index ? "." : ""}${step}` : `["${step}"]`)).join("");
}
