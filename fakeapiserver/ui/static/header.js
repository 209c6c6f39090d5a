// The header: the views, the scrubber over the revisions, the cluster's clock.

import { clear, clockTime, duration, h, svg } from "./dom.js";

export const VIEW_NAMES = {
  __proto__: null, // the name of a view comes from the address
  timeline: "Time line", objects: "Objects", graph: "Graph", why: "Why", levers: "Levers", share: "Share",
};

const ICONS = {
  back: "M10 3.5 5.5 8l4.5 4.5",
  forward: "M6 3.5 10.5 8 6 12.5",
};

function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

// Moves the moment to the next or previous revision that wrote something.
export function stepMoment(app, step) {
  const revision = app.recording.neighbour(app.state.get().moment, step);
  app.state.set({ moment: revision }, { replace: true });
}

// Shows a moment; the newest revision is now.
export function setMoment({ recording, state }, moment) {
  state.set({ moment: moment >= recording.revision ? null : Math.max(moment, recording.oldest) }, { replace: true });
}

export function mountHeader(root, app) {
  const { source, recording, state } = app;
  const links = Object.entries(VIEW_NAMES)
    .filter(([view]) => view !== "levers" || source.canAct || !source.title)
    .map(([view, name]) => h("a", { data: { view } }, name));
  const problemCount = h("span", { class: "badge danger", hidden: true });
  links.find((link) => link.dataset.view === "why").append(" ", problemCount);
  app.problems.on(() => {
    const bad = (app.problems.list ?? []).filter((problem) => problem.severity === "bad").length;
    problemCount.hidden = bad === 0;
    clear(problemCount, bad, h("span", { class: "sr" }, bad === 1 ? " problem" : " problems"));
  });
  const range = h("input", {
    type: "range", min: 0, max: 0, step: 1, "aria-label": "Moment, as a revision",
    on: { input: () => setMoment(app, Number(range.value)), keydown: (event) => event.stopPropagation() },
  });
  const moment = h("span", { class: "moment", "aria-live": "off" });
  const live = h("button", { class: "button small", title: "Show what is newest (n)", on: { click: () => state.set({ moment: null }) } });
  const clock = h("span", { class: "clock" });
  const title = h("span", { class: "title", hidden: true });
  root.append(
    h("header", { class: "header" },
      h("div", { class: "brand" }, "fakeapiserver", title),
      h("nav", { class: "nav", "aria-label": "Views" }, links),
      h("div", { class: "tools" },
        h("button", { class: "button search", data: { action: "palette" }, "aria-keyshortcuts": "Control+K" }, "Jump to…", h("kbd", {}, "Ctrl K")),
        h("button", { class: "button quiet", data: { action: "help" }, "aria-label": "Help and keys", title: "Help (?)" }, "?"))),
    h("section", { class: "scrubber", "aria-label": "Moment" },
      h("div", { class: "steps" },
        h("button", { class: "icon", "aria-label": "Previous revision", title: "Previous revision ( , )", on: { click: () => stepMoment(app, -1) } }, icon("back")),
        h("button", { class: "icon", "aria-label": "Next revision", title: "Next revision ( . )", on: { click: () => stepMoment(app, 1) } }, icon("forward"))),
      range, moment, live, clock));
  const scrubber = root.querySelector(".scrubber");

  function update(changed) {
    const current = state.get();
    app.problems.update();
    for (const link of links) {
      link.href = state.link({ view: link.dataset.view });
      if (link.dataset.view === current.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const now = current.moment === null;
    const shown = current.moment ?? recording.revision;
    range.min = recording.oldest;
    range.max = recording.revision;
    range.value = shown;
    const time = recording.time(current.moment);
    range.setAttribute("aria-valuetext", `revision ${shown}${now ? ", now" : ""}${time === null ? "" : `, ${clockTime(time, true)}`}`);
    scrubber.classList.toggle("past", !now);
    clear(moment, "Revision ", h("b", {}, shown.toLocaleString("en")),
      time === null ? "" : h("span", { class: "time" }, ` · ${clockTime(time)} · ${duration(recording.at(current.moment))} in`));
    live.textContent = now ? (source.canAct ? connectionText() : "End") : "Back to now";
    live.setAttribute("aria-pressed", String(now));
    live.classList.toggle("danger", now && source.canAct && !["live", "loading"].includes(app.connection));
    if (changed.size !== 1 || !changed.has("moment")) updateClock();
    const name = source.title || recording.start?.title || "";
    if (title.textContent !== name) {
      Object.assign(title, { textContent: name, title: name, hidden: name === "" });
    }
    document.title = [name || "fakeapiserver", VIEW_NAMES[current.view]].filter(Boolean).join(" · ");
  }

  function connectionText() {
    if (app.connection instanceof Error) return "Ended";
    return { live: "Live", loading: "Loading" }[app.connection] ?? "Connection lost";
  }

  function updateClock() {
    const stopped = clockStopped(recording);
    clear(clock, "Cluster clock", h("span", { class: stopped ? "badge warn" : "badge" }, stopped ? "stopped" : "runs"));
  }

  return { update };
}

// Whether the cluster's clock stands, by the records of it.
export function clockStopped(recording) {
  const change = recording.clock.findLast((each) => each.change === "stop" || each.change === "start");
  return change?.change === "stop" || (!change && recording.start?.stopped === true);
}
