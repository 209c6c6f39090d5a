// The time line: who did what when, and what that led to.

import { clear, h, inNextFrame, on } from "./dom.js";
import { setMoment } from "./header.js";
import { joinsOf, selectionOf, sentenceOf } from "./joins.js";
import { Lanes } from "./lanes.js";
import { Scale } from "./scale.js";
import { listenToKeys } from "./timelinekeys.js";
import { listenToPointer } from "./timelinepointer.js";
import { legend, mountTools } from "./timelinetools.js";
import { AXIS_HEIGHT, drawScene, paletteOf, ROW_HEIGHT } from "./timelinedraw.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const NO_REQUESTS = "There are no requests in this recording. A saved state has them if the server that saved it was started with --ui, or as Cluster(ui=True).";

class Timeline {
  hover = null; // a record
  focus = null; // a record, the keyboard's
  selected = null; // a record whose joins are drawn
  draft = null; // two places of the axis while a range is dragged
  rangeStart = null; // a revision

  constructor(container, app) {
    this.app = app;
    this.lanes = new Lanes(app.recording);
    this.scale = new Scale();
    this.rows = [];
    this.draw = inNextFrame(() => this.#draw());
    this.canvas = h("canvas", {
      class: "marks", tabindex: "0", role: "application", "aria-roledescription": "time line",
      "aria-label": "Time line: arrows move between marks and lanes, Enter selects, plus and minus zoom, question mark lists all keys",
    });
    this.labels = h("div", { class: "labels" });
    this.inner = h("div", { class: "inner" }, this.labels, this.canvas);
    this.scroller = h("div", { class: "lanes" }, this.inner);
    this.status = h("p", { class: "status" });
    this.closer = h("button", { class: "button small", title: "Show the selected mark, its causes and effects (z)", on: { click: () => this.zoomToJoins() } }, "Zoom to it");
    this.spoken = h("p", { class: "sr", "aria-live": "polite" });
    this.tip = h("div", { class: "tip", role: "tooltip", hidden: true });
    this.tools = mountTools(app, this);
    this.lacking = h("p", { class: "lacking", hidden: true }, NO_REQUESTS);
    this.element = container.appendChild(h("div", { class: "timeline" }, h("h1", { class: "sr" }, "Time line"), this.tools.element, this.lacking, this.scroller,
      h("div", { class: "foot" }, this.status, this.closer, legend()), this.spoken, this.tip));
    this.context = this.canvas.getContext("2d");
    this.colours = paletteOf(this.element);
    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(this.scroller);
    this.endings = [
      () => observer.disconnect(),
      on(this.scroller, "scroll", this.draw, { passive: true }),
      on(DARK, "change", () => {
        this.colours = paletteOf(this.element);
        this.draw();
      }),
      app.recording.on((records) => this.#take(records)),
      listenToPointer(this),
      listenToKeys(this),
    ];
    this.#resize();
    this.update(new Set(["view"]));
  }

  get isClusterAxis() {
    return this.app.state.get().axis === "cluster";
  }

  update() {
    const { query, axis, object } = this.app.state.get();
    const axisChanged = axis !== this.lanes.settings.axis;
    if (this.lanes.configure({ query, axis, object })) this.#layOut();
    if (axisChanged) this.scale.mode = "fit";
    if (!this.rows.length) this.#layOut();
    this.#selectFromState();
    this.tools.update();
    this.draw();
  }

  #take(records) {
    const lanesBefore = this.#laneCount();
    if (this.lanes.take(records) || this.#laneCount() !== lanesBefore || this.rows.length === 0) this.#layOut();
    if (this.selected) this.#join();
    this.draw();
  }

  #laneCount() {
    let count = 0;
    for (const group of this.lanes.groups.values()) count += group.lanes.size + (group.all.starts.length ? 1 : 0);
    return count;
  }

  // Computes the rows, and their labels.
  #layOut() {
    this.rows = this.lanes.rows();
    this.lacking.hidden = this.app.recording.requests.length > 0;
    this.rows.forEach((row, index) => {
      row.y = index * ROW_HEIGHT;
    });
    this.rowOfLane = new Map(this.rows.map((row) => [row.lane, row]));
    this.inner.style.height = `${AXIS_HEIGHT + this.rows.length * ROW_HEIGHT + 8}px`;
    clear(this.labels, this.rows.map((row) => this.#label(row)));
    if (this.selected) this.#join();
  }

  #label(row) {
    const style = { top: `${AXIS_HEIGHT + row.y}px`, height: `${ROW_HEIGHT}px` };
    if (row.more) return h("div", { class: "label muted", style }, `${row.more.toLocaleString("en")} more: filter to see them`);
    if (!row.isHeader) return h("div", { class: "label", style, title: row.lane.about }, h("span", {}, row.lane.title));
    return h("button", {
      class: "label group", style, "aria-expanded": String(row.isOpen), on: { click: () => this.toggle(row.group.id) },
    }, h("span", { class: "arrow", "aria-hidden": "true" }, row.isOpen ? "▾" : "▸"), h("span", {}, row.group.title),
    row.count ? h("span", { class: "badge" }, row.count.toLocaleString("en")) : null);
  }

  toggle(group) {
    this.lanes.toggle(group);
    this.#layOut();
    this.labels.querySelectorAll("button").forEach((button) => {
      if (button.textContent.includes(this.lanes.groups.get(group).title)) button.focus({ preventScroll: true });
    });
    this.draw();
  }

  #resize() {
    const { clientWidth, clientHeight } = this.scroller;
    const width = Math.max(clientWidth - this.labels.clientWidth, 50);
    const ratio = devicePixelRatio || 1;
    this.size = { width, height: clientHeight };
    this.scale.width = width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${clientHeight}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  #draw() {
    const { recording, state } = this.app;
    const { moment, range, axis } = state.get();
    this.scale.extend(this.lanes.from, this.lanes.to);
    drawScene(this.context, {
      ...this.size, axis, scale: this.scale, rows: this.rows, scrollTop: this.scroller.scrollTop, colours: this.colours,
      moment: this.xOfMoment(moment), range: this.draft ?? (range && range.map((revision) => this.xOfMoment(revision) ?? 0)),
      hover: this.hover, focus: document.activeElement === this.canvas ? this.focus : null, selected: this.selected, joins: this.joins ?? null,
      place: (record) => this.place(record), xOf: (record) => this.lanes.x(record),
    });
    this.drawn = (this.drawn ?? 0) + 1;
    this.canvas.dataset.marks = String(recording.size);
  }

  // Where a moment is on the axis; null for now.
  xOfMoment(moment) {
    if (moment === null) return null;
    return this.isClusterAxis ? this.app.recording.time(moment) : this.app.recording.at(moment);
  }

  // The revision of a place on the axis.
  momentAt(value) {
    const { recording } = this.app;
    return this.isClusterAxis ? recording.revisionAtTime(value) : recording.revisionAt(value);
  }

  scrub(x) {
    setMoment(this.app, this.momentAt(this.scale.value(x)));
  }

  // Where a record is drawn: {start, end, look, y}, or null if it is filtered out.
  place(record) {
    const lane = this.lanes.laneOf(record);
    const row = this.rowOfLane.get(lane);
    if (!row) return null;
    const index = lane.indexOf(record, this.lanes.x(record));
    if (index < 0) return null;
    return { start: lane.starts[index], end: lane.ends[index], look: lane.looks[index], y: AXIS_HEIGHT + row.y - this.scroller.scrollTop + ROW_HEIGHT / 2 };
  }

  // The record whose mark is at a place of the canvas, or null.
  markAt(x, y) {
    const row = this.rows[Math.floor((y - AXIS_HEIGHT + this.scroller.scrollTop) / ROW_HEIGHT)];
    if (!row || y < AXIS_HEIGHT || (row.isHeader && row.isOpen)) return null;
    const { lane } = row;
    const near = this.scale.value(7) - this.scale.value(0);
    const value = this.scale.value(x);
    let best = null;
    let least = Infinity;
    for (let index = lane.first(value - near - lane.longest); index < lane.starts.length && lane.starts[index] <= value + near; index += 1) {
      const distance = value < lane.starts[index] ? lane.starts[index] - value : Math.max(0, value - lane.ends[index]);
      if (distance <= near && distance <= least) [best, least] = [lane.records[index], distance];
    }
    return best;
  }

  select(record) {
    const changes = record ? selectionOf(record) : { panel: "" };
    this.selected = record;
    this.focus = record ?? this.focus;
    this.#join();
    if (changes) this.app.state.set(changes);
    if (record) this.say(`Selected: ${sentenceOf(this.app.recording, record)}. ${this.joinsText()}`);
    this.draw();
  }

  // The selection of the state, if it came from elsewhere, e.g. from a link.
  #selectFromState() {
    const { request, panel, object } = this.app.state.get();
    if (panel === "request" && request !== this.selected?.seq) {
      this.selected = this.app.recording.request(request);
      this.#join();
    } else if (!panel && this.selected && (selectionOf(this.selected) || object)) {
      this.selected = null;
      this.#join();
    }
  }

  #join() {
    const { recording } = this.app;
    this.joins = this.selected ? joinsOf(recording, this.selected) : null;
    if (this.joins) {
      const upwards = joinsOf({ causesOf: (each) => recording.causesOf(each), effectsOf: () => [] }, this.selected);
      this.joins.causes = new Set(upwards.edges.map((edge) => edge.to));
    }
    this.status.textContent = this.selected ? `${sentenceOf(recording, this.selected)}. ${this.joinsText()}` : "";
    this.element.classList.toggle("chosen", this.selected !== null);
  }

  zoomToJoins() {
    if (!this.joins) return;
    const spots = [...this.joins.records].map((record) => this.place(record)).filter(Boolean);
    if (!spots.length) return;
    this.scale.show(Math.min(...spots.map((spot) => spot.start)), Math.max(...spots.map((spot) => spot.end)));
    this.draw();
  }

  joinsText() {
    const { edges } = this.joins ?? { edges: [] };
    if (!edges.length) return "Nothing that is recorded caused it or followed from it.";
    const causes = edges.filter((edge) => this.joins.causes.has(edge.to)).length;
    return `${causes} causes and ${edges.length - causes} effects are drawn.`;
  }

  say(sentence) {
    this.spoken.textContent = sentence;
  }

  destroy() {
    this.draw.cancel();
    this.endings.forEach((end) => end());
    this.element.remove();
  }
}

export function mountTimeline(container, app) {
  return new Timeline(container, app);
}
