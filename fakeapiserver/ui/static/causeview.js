// Draws sentences with their links, and chains of causes.

import { h } from "./dom.js";

// The parts of a sentence as nodes; links lead to objects, requests and moments.
export function sentenceView(parts, app) {
  return parts.map((part) => (typeof part === "string" ? part : part.isCode ? h("code", { class: "inline-code" }, part.label) : linkView(part, app)));
}

export function linkView({ label, ref }, app) {
  return h("a", { href: app.state.link(ref) }, label);
}

export function objectAnchor(app, { r, ns, name }, label, properties = {}) {
  return h("a", { href: app.state.link({ object: { r, ns: ns ?? "", name } }), ...properties }, label ?? name);
}

// A chain of causes as nested lists; `open` levels are shown at once.
export function causesView(causes, app) {
  if (!causes.length) return null;
  return h("ul", { class: "causes" }, causes.map((one) => h("li", {},
    h("p", { class: "cause" }, sentenceView(one.parts, app)),
    one.quote ? h("blockquote", { class: "quote mono" }, one.quote) : null,
    causesView(one.because, app),
    one.fix ? fixView(one.fix, app) : null)));
}

export function fixView(fix, app) {
  return h("p", { class: "fix" }, h("span", { class: "fix-label" }, "Fix"), h("span", {}, sentenceView(fix, app)));
}
