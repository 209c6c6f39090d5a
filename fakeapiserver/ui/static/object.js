// One object: why it is as it is, its conditions, events and relatives; its YAML with the managers of its fields; its history.

import { causesView, linkView, objectAnchor } from "./causeview.js";
import { clear, dateTime, ago, h } from "./dom.js";
import { objectHistory } from "./objecthistory.js";
import { familyView } from "./objectfamily.js";
import { meaningOf } from "./whycustom.js";
import { why } from "./why.js";
import { eventTime, World } from "./world.js";
import { toneIcon } from "./summary.js";
import { toYaml } from "./yamllines.js";
import { yamlView } from "./yaml.js";

const TABS = [["", "Overview"], ["yaml", "YAML"], ["history", "History"]];

export function mountObject(container, app) {
  const title = h("h1", {});
  const subtitle = h("p", { class: "subtitle muted" });
  const gone = h("p", { class: "gone", hidden: true });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the object" }, TABS.map(([name, label]) => h("button", {
    role: "tab", id: `tab-${name || "overview"}`, "aria-controls": "object-part", on: { click: () => app.state.set({ tab: name, panel: "object" }), keydown: tabKeyed },
  }, label)));
  const part = h("div", { class: "object-part", id: "object-part", role: "tabpanel", tabindex: "-1" });
  const element = container.appendChild(h("article", { class: "object" }, h("header", { class: "object-head" }, title, subtitle, gone), tabs, part));
  let shown = "";
  let turn = 0;
  let history = null;
  update(new Set());

  function tabKeyed(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const index = TABS.findIndex(([name]) => name === currentTab());
    const [name] = TABS[(index + step + TABS.length) % TABS.length];
    app.state.set({ tab: name, panel: "object" });
    tabs.querySelector(`#tab-${name || "overview"}`).focus();
  }

  function currentTab() {
    const { tab } = app.state.get();
    return TABS.some(([name]) => name === tab) ? tab : "";
  }

  // The state to show: that of the moment; if the object doesn't exist then, its last one, or the first.
  function headOf({ r, ns, name }, moment) {
    const { recording } = app;
    const head = recording.find(r, ns, name, moment);
    if (head) return { head, exists: true };
    const states = recording.uidsNamed(r, ns, name).flatMap((uid) => recording.history(uid));
    const before = states.filter((state) => moment === null || state.rev <= moment).at(-1);
    return { head: before ?? states[0] ?? null, exists: false, isLater: !before && states.length > 0 };
  }

  function update(changed) {
    const { object: ref, moment } = app.state.get();
    if (!ref) return;
    const { head, exists, isLater } = headOf(ref, moment);
    const tab = currentTab();
    for (const [index, button] of [...tabs.children].entries()) {
      button.setAttribute("aria-selected", String(TABS[index][0] === tab));
      button.tabIndex = TABS[index][0] === tab ? 0 : -1;
    }
    // The overview depends on other objects as well.
    const key = JSON.stringify([ref, moment, head?.rev, tab, exists, tab === "" && moment === null ? app.recording.size : 0]);
    if (key === shown) return;
    shown = key;
    drawHead(ref, head, exists, isLater);
    draw(ref, head, tab, turn += 1, changed).catch((error) => {
      clear(part, h("p", { class: "danger-text" }, error.message));
    });
  }

  function drawHead(ref, head, exists, isLater) {
    const kind = app.recording.kind(ref.r);
    clear(title, h("span", { class: "muted kind" }, kind.kind), " ", ref.name);
    clear(subtitle, ref.ns ? ["in ", objectAnchor(app, { r: "namespaces", ns: "", name: ref.ns }), " · "] : null,
      head ? [`revision ${head.rev} · created ${dateTime(head.created)}`] : null);
    gone.hidden = exists;
    if (!head) gone.textContent = "This recording has no object of this name.";
    else if (!exists) {
      clear(gone, isLater ? "It doesn't exist yet at this moment. " : `It was deleted at revision ${head.rev}. This is its last state. `,
        linkView({ label: isLater ? "Go to its creation" : "Go to the moment before", ref: { moment: isLater ? head.rev : head.rev - 1, object: ref } }, app));
    }
  }

  async function draw(ref, head, tab, mine) {
    if (!head) {
      clear(part);
      return;
    }
    const object = (await app.source.states([head.rev], { objects: true })).get(head.rev)?.object;
    if (mine !== turn) return;
    if (!object) {
      clear(part, h("p", { class: "muted" }, "The recording has forgotten this state: it was too long ago. Move to a later moment."));
      return;
    }
    if (tab !== "history") history = null;
    if (tab === "yaml") clear(part, copyBar(object), yamlView(object));
    else if (tab === "history") {
      history ??= objectHistory(app, part);
      history.update(ref, head);
    } else {
      const view = await overview(ref, head, object);
      if (mine === turn) clear(part, view);
    }
  }

  function copyBar(object) {
    const copy = () => navigator.clipboard?.writeText(toYaml(withoutManaged(object))).then(() => app.notify("Copied."), () => app.notify("The browser doesn't let this page copy."));
    return h("div", { class: "copy-bar" }, h("button", { class: "button small", on: { click: copy } }, "Copy"));
  }

  async function overview(ref, head, object) {
    const { moment } = app.state.get();
    const world = new World(app.recording, app.source, moment);
    const [causes, events, family] = await Promise.all([why(app.recording, app.source, ref, moment), world.eventsOf(object), familyView(app, head)]);
    return [
      causes.length ? section("Why", h("div", { class: "why-box" }, causesView(causes, app))) : null,
      finalizersView(object),
      conditionsView(object),
      family ? section("Owners and dependents", family) : null,
      eventsView(events, world),
      factsView(object),
    ];
  }

  return { update, destroy: () => { turn += 1; element.remove(); } };
}

function withoutManaged(object) {
  const { managedFields: _fields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function section(title, ...children) {
  return h("section", { class: "part" }, h("h2", {}, title), children);
}

function finalizersView(object) {
  const finalizers = object.metadata.finalizers ?? [];
  if (!finalizers.length) return null;
  return section("Finalizers", h("ul", { class: "plain-list" }, finalizers.map((one) => h("li", { class: "mono" }, one))),
    h("p", { class: "muted" }, object.metadata.deletionTimestamp ? "The object is deleted once all of these are removed." : "These will hold back a deletion until they are removed."));
}

const TONES = { good: "ok", bad: "bad", unknown: "wait", neutral: "plain" };

function conditionsView(object) {
  const conditions = object.status?.conditions ?? [];
  if (!conditions.length) return null;
  return section("Conditions", h("ul", { class: "conditions" }, conditions.map((one) => h("li", {},
    toneIcon(TONES[meaningOf(one)]),
    h("span", { class: "condition-type" }, one.type), h("span", { class: "muted" }, one.status),
    h("span", {}, one.reason ? h("span", { class: "mono" }, one.reason) : null, one.message ? ` ${one.message}` : "", one.lastTransitionTime
      ? h("time", { class: "muted", datetime: one.lastTransitionTime }, ` since ${dateTime(Date.parse(one.lastTransitionTime) / 1000).slice(11)}`) : null)))));
}

function eventsView(events, world) {
  if (!events.length) return null;
  const shown = events.slice(0, 30);
  return section("Events", h("ul", { class: "events" }, shown.map((one) => {
    const times = one.count ?? one.series?.count ?? one.deprecatedCount ?? 1;
    return h("li", { class: one.type === "Warning" ? "warning" : null },
      h("time", { class: "muted", title: dateTime(eventTime(one)) }, `${ago(Math.max(0, world.time - eventTime(one)))}`),
      h("span", { class: "reason" }, one.type === "Warning" ? h("span", { class: "sr" }, "Warning: ") : null, one.reason, times > 1 ? h("span", { class: "muted" }, ` ×${times}`) : null),
      h("span", {}, one.message ?? one.note, h("span", { class: "muted" }, ` ${one.source?.component || one.reportingComponent || one.reportingController || ""}`)));
  })), events.length > shown.length ? h("p", { class: "muted" }, `and ${events.length - shown.length} older ones`) : null);
}

function factsView(object) {
  const { metadata } = object;
  const pairs = (map) => h("ul", { class: "pairs" }, Object.entries(map).map(([key, value]) => h("li", { class: "mono", title: `${key}=${value}` },
    h("span", { class: "muted" }, `${key}=`), value.length > 160 ? `${value.slice(0, 160)}…` : value)));
  const facts = [
    ["Labels", metadata.labels && Object.keys(metadata.labels).length ? pairs(metadata.labels) : null],
    ["Annotations", metadata.annotations && Object.keys(metadata.annotations).length ? pairs(metadata.annotations) : null],
    ["Created", metadata.creationTimestamp ? dateTime(Date.parse(metadata.creationTimestamp) / 1000) : null],
    ["Deletion", metadata.deletionTimestamp ? `asked for, due ${dateTime(Date.parse(metadata.deletionTimestamp) / 1000)}` : null],
    ["Generation", metadata.generation ? `${metadata.generation}${object.status?.observedGeneration !== undefined ? `, observed ${object.status.observedGeneration}` : ""}` : null],
    ["uid", metadata.uid ? h("span", { class: "mono" }, metadata.uid) : null],
  ].filter(([, value]) => value);
  return section("Metadata", h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
