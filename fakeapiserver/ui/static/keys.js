// The keyboard: keys of the whole page, the command palette, the help.

import { clear, h, on } from "./dom.js";
import { stepMoment, VIEW_NAMES } from "./header.js";

const GO = { t: "timeline", o: "objects", g: "graph", w: "why", l: "levers", s: "share" };
const MOST_FOUND = 60;

const HELP = [
  ["Everywhere", [
    ["Ctrl K", "jump to an object, a request, a revision or a view"],
    ["?", "this help"],
    ["/", "filter"],
    ["g t, g o, g g", "go to the time line, the objects, the graph"],
    ["g w, g l, g s", "go to why, levers, share"],
    [", and .", "the previous and the next revision"],
    ["n", "back to now"],
    ["Esc", "close the details"],
  ]],
  ["On the time line", [
    ["← →", "the previous and the next mark of the lane"],
    ["↑ ↓", "the lane above and below"],
    ["Enter", "select the mark: its causes and effects are drawn"],
    ["+ and −, wheel", "zoom"],
    ["Shift ← →, drag", "move"],
    ["0", "show everything"],
    ["z", "zoom to the selected mark, its causes and effects"],
    ["m", "show the moment of the mark in all views"],
    ["[ and ]", "compare from here, to here"],
    ["Shift drag", "compare two moments"],
  ]],
];

function isTyping(target) {
  return target instanceof Element && target.closest("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

export function mountKeys(root, app) {
  const { state } = app;
  const palette = new Palette(app);
  const help = helpDialog();
  root.append(palette.dialog, help);
  let going = 0;

  const actions = {
    "?": () => help.showModal(),
    "/": () => document.querySelector(".view [data-filter]")?.focus(),
    ",": () => stepMoment(app, -1),
    ".": () => stepMoment(app, 1),
    n: () => state.set({ moment: null }),
    Escape: () => state.get().panel && state.set({ panel: "" }),
  };

  on(window, "keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.open();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isGoing = performance.now() - going < 1500;
    going = 0;
    if (isGoing && Object.hasOwn(GO, event.key)) state.set({ view: GO[event.key] });
    else if (event.key === "g") going = performance.now();
    else if (Object.hasOwn(actions, event.key)) actions[event.key]();
    else return;
    event.preventDefault();
  });
  on(root, "click", (event) => {
    const action = event.target.closest("[data-action]")?.dataset.action;
    if (action === "palette") palette.open();
    if (action === "help") help.showModal();
  });
}

function helpDialog() {
  return h("dialog", { "aria-labelledby": "help-title" },
    h("div", { class: "help", tabindex: "0" },
      h("h1", { id: "help-title" }, "Keys"),
      HELP.map(([title, keys]) => [
        h("h2", {}, title),
        h("dl", {}, keys.map(([key, meaning]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, meaning)])),
      ]),
      h("form", { method: "dialog" }, h("p", {}, h("button", { class: "button" }, "Close")))));
}

class Palette {
  #entries = [];
  #selected = 0;

  constructor(app) {
    this.app = app;
    this.list = h("div", { role: "listbox", id: "palette-list", "aria-label": "What was found", tabindex: "-1" });
    this.input = h("input", {
      type: "text", role: "combobox", "aria-label": "Jump to", "aria-controls": "palette-list", "aria-expanded": "true", "aria-autocomplete": "list",
      placeholder: "Object, #request, @revision or view", autocomplete: "off", spellcheck: "false",
      on: { input: () => this.search(), keydown: (event) => this.keyed(event) },
    });
    this.dialog = h("dialog", { class: "palette", "aria-label": "Jump to" }, this.input, this.list);
    on(this.dialog, "click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
  }

  open() {
    if (this.dialog.open) return;
    this.input.value = "";
    this.dialog.showModal();
    this.search();
  }

  search() {
    const words = this.input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    this.#entries = entriesFor(this.app, words);
    this.#select(0);
  }

  #select(index) {
    this.#selected = Math.max(0, Math.min(index, this.#entries.length - 1));
    clear(this.list, this.#entries.length ? this.#entries.map((entry, place) => h("div", {
      role: "option", id: `palette-${place}`, "aria-selected": String(place === this.#selected), on: { click: () => this.#take(entry) },
    }, h("span", { class: "name" }, entry.name), h("span", { class: "muted" }, entry.about))) : h("p", { class: "empty" }, "Nothing has this name."));
    if (this.#entries.length) this.input.setAttribute("aria-activedescendant", `palette-${this.#selected}`);
    else this.input.removeAttribute("aria-activedescendant");
    this.list.children[this.#selected]?.scrollIntoView({ block: "nearest" });
  }

  #take(entry) {
    this.dialog.close();
    this.app.state.set(entry.changes);
  }

  keyed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#select(this.#selected + step);
    else if (event.key === "Enter" && this.#entries.length) this.#take(this.#entries[this.#selected]);
    else return;
    event.preventDefault();
  }
}

function entriesFor({ recording, state }, words) {
  const entries = [];
  const [first] = words;
  const number = first ? Number(first.replace(/^[#@]/, "")) : NaN;
  if (Number.isInteger(number) && number > 0) {
    const request = recording.request(number);
    if (request && !first.startsWith("@")) {
      entries.push({ name: `Request #${number}: ${request.verb} ${request.path}`, about: String(request.status), changes: { request: number } });
    }
    if (!first.startsWith("#") && number >= recording.oldest && number <= recording.revision) {
      entries.push({ name: `Revision ${number}`, about: "moment", changes: { moment: number } });
    }
  }
  for (const [view, name] of Object.entries(VIEW_NAMES)) {
    if (words.every((word) => name.toLowerCase().includes(word))) entries.push({ name, about: "view", changes: { view } });
  }
  if (words.length) entries.push(...objectEntries(recording, state.get().moment, words));
  return entries.slice(0, MOST_FOUND);
}

function objectEntries(recording, moment, words) {
  const entries = [];
  for (const head of recording.objects(moment)) {
    const kind = recording.kind(head.r);
    const title = `${head.ns ? `${head.ns}/` : ""}${head.name}`;
    const searched = `${kind.kind} ${head.r} ${kind.short?.join(" ") ?? ""} ${title}`.toLowerCase();
    if (!words.every((word) => searched.includes(word))) continue;
    entries.push({ name: title, about: kind.kind, exact: words.includes(head.name) ? 0 : 1,
      changes: { object: { r: head.r, ns: head.ns, name: head.name } } });
    if (entries.length > 2000) break;
  }
  return entries.sort((a, b) => a.exact - b.exact || a.name.length - b.name.length).slice(0, MOST_FOUND);
}
