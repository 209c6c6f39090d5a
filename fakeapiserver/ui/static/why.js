// The view "Why": what looks wrong at the moment, found without being asked; and the causes of one object's or request's state.

import { causesView, fixView, sentenceView } from "./causeview.js";
import { clear, counted, h } from "./dom.js";
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

const SEVERITY_NAMES = { bad: "wrong", note: "notice" };
const PROBLEMS_OPEN = 6;
const ALL_WELL = "No pod is pending, no workload is incomplete, nothing is stuck in deletion, no write was refused for good, and no two clients " +
  "fight over a field. Scrub to another moment to look there.";

export function mountWhy(container, app) {
  const status = h("span", { class: "muted", role: "status" });
  const list = h("ol", { class: "problems" });
  const well = h("div", { class: "all-well", hidden: true });
  const element = container.appendChild(h("section", { class: "why", "aria-labelledby": "why-title" },
    h("header", { class: "why-head" }, h("h1", { id: "why-title" }, "What looks wrong"), status), list, well));
  const finder = app.problems;
  const opened = new Map(); // identity of a problem -> whether its user has opened or closed it
  let drawn = new Map(); // problem as text -> element
  const unsubscribe = finder.on(draw);
  draw();

  function draw() {
    const { list: found, error, moment } = finder;
    if (error || !found) {
      status.textContent = error ? error.message : "Looking…";
      return;
    }
    const when = moment === null ? "now" : `at revision ${moment}`;
    const bad = found.filter((one) => one.severity === "bad").length;
    const counts = [bad ? counted(bad, "problem") : "", found.length > bad ? counted(found.length - bad, "notice") : ""];
    status.textContent = found.length ? `${counts.filter(Boolean).join(" and ")} ${when}` : "";
    drawProblems(found);
    well.hidden = found.length > 0;
    if (!found.length) clear(well, h("h2", {}, `Nothing looks wrong ${when}`), h("p", { class: "muted" }, ALL_WELL));
  }

  // Problems that are the same keep their elements, with the focus and the selected text in them.
  function drawProblems(found) {
    const next = new Map(found.map((problem, index) => {
      const text = JSON.stringify(problem);
      const identity = JSON.stringify([problem.kind, problem.subject?.name, problem.subject?.ns, problem.title.map((part) => part.label ?? "")]);
      return [text, drawn.get(text) ?? problemView(problem, app, opened.get(identity) ?? index < PROBLEMS_OPEN, (isOpen) => opened.set(identity, isOpen))];
    }));
    const isSame = next.size === drawn.size && [...next.keys()].join() === [...drawn.keys()].join();
    drawn = next;
    if (!isSame) list.replaceChildren(...drawn.values());
  }

  return {
    update: draw,
    destroy: () => {
      unsubscribe();
      element.remove();
    },
  };
}

function problemView(problem, app, isOpen, onToggle) {
  const name = SEVERITY_NAMES[problem.severity];
  const line = [h("span", { class: `severity ${problem.severity}`, title: name }, h("span", { class: "sr" }, name)),
    h("span", { class: "problem-title" }, sentenceView(problem.title, app))];
  if (!problem.causes.length) return h("li", { class: "problem" }, h("p", { class: "plain-problem" }, line));
  const details = h("details", { open: isOpen }, h("summary", { on: { click: () => onToggle(!details.open) } }, line),
    causesView(problem.causes, app), problem.fix ? fixView(problem.fix, app) : null);
  return h("li", { class: "problem" }, details);
}
