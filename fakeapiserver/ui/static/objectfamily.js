// Owners and dependents of an object as a tree with their states.

import { objectAnchor } from "./causeview.js";
import { h } from "./dom.js";
import { summaries, toneIcon, TONE_NAMES } from "./summary.js";

const MOST_CHILDREN = 12;
const DEEPEST_KIN = 6;

// The tree from the topmost owners down, or null if the object has no relatives.
export async function familyView(app, head) {
  const { moment } = app.state.get();
  const { recording } = app;
  const roots = topOwners(recording, head, moment);
  const shown = [];
  const trees = roots.map((root) => branch(root, 0, new Set()));
  if (shown.length < 2 && !trees.some((tree) => tree.missing.length)) return null;
  const states = await summaries(app.source, shown);
  return h("ul", { class: "family" }, trees.map(draw));

  function branch(one, depth, seen) {
    shown.push(one);
    seen.add(one.uid);
    const children = depth < DEEPEST_KIN ? recording.dependents(one.uid, moment).filter((child) => !seen.has(child.uid) && !child.r.startsWith("events")) : [];
    // The object itself is never among those that are left out.
    children.sort((a, b) => (b.uid === head.uid) - (a.uid === head.uid) || a.r.localeCompare(b.r) || b.created - a.created);
    const missing = (one.owners ?? []).filter((uid) => !recording.byUid(uid, moment));
    return { one, missing, more: Math.max(0, children.length - MOST_CHILDREN), children: children.slice(0, MOST_CHILDREN).map((child) => branch(child, depth + 1, seen)) };
  }

  function draw({ one, missing, more, children }) {
    const { tone, text } = states.get(one.uid) ?? { tone: "plain", text: "" };
    const isSelf = one.uid === head.uid;
    const name = isSelf ? h("strong", { "aria-current": "true" }, one.name) : objectAnchor(app, one);
    return h("li", {}, h("span", { class: "relative" }, toneIcon(tone), h("span", { class: "sr" }, TONE_NAMES[tone]), h("span", { class: "muted" }, recording.kind(one.r).kind), name,
      text ? h("span", { class: "muted" }, text) : null, missing.length ? h("span", { class: "badge warn" }, "owner is gone") : null),
    children.length || more ? h("ul", {}, children.map(draw), more ? h("li", { class: "muted" }, `and ${more} more`) : null) : null);
  }
}

function topOwners(recording, head, moment) {
  const tops = new Map();
  const visit = (one, depth) => {
    const owners = (one.owners ?? []).map((uid) => recording.byUid(uid, moment)).filter(Boolean);
    if (!owners.length || depth > DEEPEST_KIN) tops.set(one.uid, one);
    else owners.forEach((owner) => visit(owner, depth + 1));
  };
  visit(head, 0);
  return [...tops.values()];
}
