// The time line's toolbar and its legend.

import { h } from "./dom.js";
import { LOOK } from "./lanes.js";
import { termOf, withTerm } from "./query.js";
import { drawMark, paletteOf } from "./timelinedraw.js";

const STATUS_CHOICES = [["refused", "refused"], ["ok", "successful"], ["4xx", "4xx"], ["409", "409 Conflict"], ["403", "403 Forbidden"], ["5xx", "5xx"]];

const LEGEND = [
  [LOOK.READ, "read"], [LOOK.WRITE, "write"], [LOOK.REFUSED, "refused"], [LOOK.CREATE, "created"], [LOOK.UPDATE, "changed"], [LOOK.DELETE, "deleted"],
  [LOOK.DELIVERY, "watch event"], [LOOK.RECONCILE, "reconcile"],
];

// Returns {element, update()}.
export function mountTools(app, timeline) {
  const { state, recording, source } = app;
  const input = h("input", {
    type: "search", class: "grow", data: { filter: "" }, placeholder: "Filter: text, ns:shop, client:kubectl, verb:patch, status:409, -verb:get",
    "aria-label": "Filter the time line", spellcheck: "false", autocomplete: "off",
    on: { input: () => state.set({ query: input.value }, { replace: true }) },
  });
  const choices = [
    choice("ns", "Namespace", () => values((request) => request.ns)),
    choice("client", "Client", () => values((request) => request.client)),
    choice("verb", "Verb", () => values((request) => request.verb)),
    choice("status", "Status", () => STATUS_CHOICES),
  ];

  function values(of) {
    return [...new Set(recording.requests.map(of))].filter(Boolean).sort().map((value) => [value, value]);
  }

  // A list whose values are looked up when it is opened.
  function choice(field, title, list) {
    const select = h("select", { "aria-label": title, on: { focus: load, pointerdown: load, change: chosen } });
    load();

    function load() {
      const current = termOf(state.get().query, field);
      const options = list();
      if (current && !options.some(([value]) => value === current)) options.unshift([current, current]);
      select.replaceChildren(h("option", { value: "" }, title), ...options.map(([value, name]) => h("option", { value }, name)));
      select.value = current;
    }

    function chosen() {
      state.set({ query: withTerm(state.get().query, field, select.value) });
    }

    return { select, update: () => {
      const current = termOf(state.get().query, field);
      if (select.value !== current) load();
      select.classList.toggle("set", current !== "");
    } };
  }

  const axes = [["real", "Real time", "Seconds since the recording began"], ["cluster", "Cluster time", "The cluster's clock, which can be stopped and advanced"]]
    .map(([axis, name, title]) => h("button", { class: "button small", title, data: { axis }, on: { click: () => state.set({ axis }) } }, name));

  function zooming(factor) {
    if (timeline.scale.mode === "fit") timeline.scale.mode = "tail";
    timeline.scale.zoom(factor);
    timeline.draw();
  }

  const element = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Time line" },
    input, choices.map((each) => each.select),
    h("div", { class: "segments", role: "group", "aria-label": "Axis" }, axes),
    h("div", { class: "segments", role: "group", "aria-label": "Zoom" },
      h("button", { class: "button small", "aria-label": "Zoom out", title: "Zoom out (−)", on: { click: () => zooming(1.6) } }, "−"),
      h("button", { class: "button small", title: "Show everything (0)", on: { click: () => {
        timeline.scale.fit();
        timeline.draw();
      } } }, "Fit"),
      h("button", { class: "button small", "aria-label": "Zoom in", title: "Zoom in (+)", on: { click: () => zooming(1 / 1.6) } }, "+")));

  return {
    element,
    update() {
      const { query, axis } = state.get();
      if (input.value !== query) input.value = query;
      for (const each of choices) each.update();
      for (const button of axes) button.setAttribute("aria-pressed", String(button.dataset.axis === axis));
      element.dataset.source = source.canAct ? "live" : "file";
    },
  };
}

// The marks and what they mean.
export function legend() {
  const list = h("ul", { class: "legend", "aria-label": "Marks" });
  for (const [look, name] of LEGEND) {
    const canvas = h("canvas", { width: 28, height: 36, "aria-hidden": "true" });
    list.append(h("li", {}, canvas, name));
    requestAnimationFrame(() => paint(canvas, look));
  }
  matchMedia("(prefers-color-scheme: dark)").onchange = () => {
    [...list.querySelectorAll("canvas")].forEach((canvas, index) => paint(canvas, LEGEND[index][0]));
  };
  return list;
}

function paint(canvas, look) {
  const context = canvas.getContext("2d");
  context.setTransform(2, 0, 0, 2, 0, 0);
  context.clearRect(0, 0, 14, 18);
  drawMark(context, look, look === LOOK.READ || look === LOOK.WRITE ? 5 : 7, 9, 3, paletteOf(document.documentElement));
}
