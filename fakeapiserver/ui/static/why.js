// The view "Why": what looks wrong at the moment, found without being asked; and the causes of one object's or request's state.

import { causesView, fixView, sentenceView } from "./causeview.js";
import { clear, counted, h } from "./dom.js";
import { problems } from "./problems.js";
import { whyObject, whyWriters } from "./whyobject.js";
import { whyRefused } from "./whyrequest.js";
import { World } from "./world.js";

// The causes why an object ({r, ns, name}) or a request ({request: seq}) is as it is, the most probable first: [{text, parts, links,
// because, fix, quote}]; none if nothing is wrong with it.
export async function why(recording, source, ref, moment = null) {
  const world = new World(recording, source, moment);
  if (ref.request !== undefined) {
    const request = recording.request(ref.request);
    return request ? whyRefused(world, request) : [];
  }
  const head = world.head(ref.r, ref.ns, ref.name);
  const [object] = head ? await world.load([head]) : [];
  if (!object) return [];
  return [...await whyWriters(world, head), ...await whyObject(world, ref.r, object)];
}

// The problems of a recording, asked for again only when something has changed, and one question at a time.
export class ProblemFinder {
  #running = null;
  #asked = "";
  list = null; // null while nothing is known yet

  constructor(app, onChange) {
    this.app = app;
    this.onChange = onChange;
  }

  update() {
    const { recording, source, state } = this.app;
    const { moment } = state.get();
    const key = `${moment} ${moment === null ? recording.size : ""} ${recording.start?.began}`;
    if (key === this.#asked || this.#running) return;
    this.#asked = key;
    this.#running = problems(recording, source, moment).then((list) => {
      this.list = list;
      this.error = null;
    }, (error) => {
      this.error = error;
    }).then(() => {
      this.#running = null;
      this.onChange();
      this.update();
    });
  }
}

const SEVERITY_NAMES = { bad: "wrong", note: "notice" };

export function mountWhy(container, app) {
  const status = h("span", { class: "muted", role: "status" });
  const list = h("ol", { class: "problems" });
  const element = container.appendChild(h("section", { class: "why", "aria-labelledby": "why-title" },
    h("header", { class: "why-head" }, h("h1", { id: "why-title" }, "What looks wrong"), status), list));
  let shown = "";
  const finder = new ProblemFinder(app, draw);
  finder.update();

  function draw() {
    const found = finder.list;
    if (finder.error) {
      status.textContent = finder.error.message;
      return;
    }
    if (!found) {
      status.textContent = "Looking…";
      return;
    }
    const text = JSON.stringify([found, app.state.get().moment]);
    if (text === shown) return;
    shown = text;
    const bad = found.filter((one) => one.severity === "bad").length;
    const when = app.state.get().moment === null ? "now" : `at revision ${app.state.get().moment}`;
    status.textContent = found.length ? `${[bad ? counted(bad, "problem") : "", found.length > bad ? counted(found.length - bad, "notice") : ""].filter(Boolean).join(" and ")} ${when}` : "";
    if (!found.length) clear(list, h("li", { class: "all-well" }, h("h2", {}, `Nothing looks wrong ${when}`), h("p", { class: "muted" },
      "No pod is pending, no workload is incomplete, nothing is stuck in deletion, no write was refused for good, and no two clients fight over a field. Scrub to another moment to look there.")));
    else clear(list, found.map((one, index) => problemView(one, app, index < 6)));
  }

  return {
    update: () => {
      finder.update();
      draw();
    },
    destroy: () => element.remove(),
  };
}

function problemView(problem, app, isOpen) {
  const title = h("span", { class: "problem-title" }, sentenceView(problem.title, app));
  const body = [causesView(problem.causes, app), problem.fix ? fixView(problem.fix, app) : null];
  const summary = h("summary", {}, h("span", { class: `severity ${problem.severity}`, title: SEVERITY_NAMES[problem.severity] }, h("span", { class: "sr" }, SEVERITY_NAMES[problem.severity])), title);
  if (!problem.causes.length) return h("li", { class: "problem" }, h("p", { class: "plain-problem" }, summary.childNodes.length ? [...summary.childNodes] : null));
  return h("li", { class: "problem" }, h("details", { open: isOpen }, summary, body));
}
