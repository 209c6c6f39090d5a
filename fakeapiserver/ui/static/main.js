// The page: it opens the source, feeds the recording, and shows the view and the details that the state names.

import { clear, h, inNextFrame } from "./dom.js";
import { mountGraph } from "./graph.js";
import { mountHeader } from "./header.js";
import { mountKeys } from "./keys.js";
import { mountLevers } from "./levers.js";
import { mountObject } from "./object.js";
import { mountObjects } from "./objects.js";
import { mountPanel } from "./panel.js";
import { ProblemFinder } from "./problemfinder.js";
import { Recording } from "./recording.js";
import { mountChanges } from "./changes.js";
import { mountRequest } from "./request.js";
import { mountShare } from "./share.js";
import { LoggedOut, openSource } from "./source.js";
import { pageState } from "./state.js";
import { mountTimeline } from "./timeline.js";
import { mountWhy } from "./why.js";

const VIEWS = { timeline: mountTimeline, objects: mountObjects, graph: mountGraph, why: mountWhy, levers: mountLevers, share: mountShare };
const DETAILS = { object: mountObject, request: mountRequest, changes: mountChanges };
// While records arrive, the views other than the time line are updated that often at most.
const UPDATE_PAUSE = 150; // ms
const PHONE = "(max-width: 700px)";

const emptyStates = {
  loading: () => [h("h1", {}, "Loading"), h("p", {}, "The recording is on its way from the server.")],
  waiting: () => [h("h1", {}, "Nothing has happened yet"), h("p", {}, "This page fills as soon as the server gets its first request.")],
  unrecorded: () => [
    h("h1", {}, "Nothing is recorded here"),
    h("p", {}, "Recording is switched off on this server. Switch the page on when you start it:"),
    h("pre", {}, "fakeapiserver serve --ui\n\nCluster(ui=True)                     # in Python"),
  ],
  loggedOut: () => [
    h("h1", {}, "You are not logged in"),
    h("p", {}, "Open the link that this command prints; it can be used once:"),
    h("pre", {}, "fakeapiserver ui"),
  ],
};

async function boot() {
  const root = document.getElementById("app");
  const recording = new Recording();
  const state = pageState();
  if (!location.hash && matchMedia(PHONE).matches) state.set({ view: "objects" }, { replace: true });
  const source = await openSource();
  const app = { source, recording, state, connection: source.canAct ? "loading" : "live", notify };
  app.problems = new ProblemFinder(app);
  const header = mountHeader(root, app);
  const notice = root.appendChild(h("div", { class: "notice", role: "alert", hidden: true }));
  const body = root.appendChild(h("div", { class: "body" }));
  const main = body.appendChild(h("main", { class: "view", id: "view", tabindex: "-1" }));
  const details = mountPanel(body, app, DETAILS);
  mountKeys(root, app);
  if (source.failure) showFailure(notice, source);

  let mounted = null; // {name, view, element}
  let changes = new Set();

  function update() {
    const changed = changes;
    changes = new Set();
    const name = shownView();
    if (mounted?.name !== name) show(name);
    else mounted.view?.update(changed);
    header.update(changed);
    details.update(changed);
  }

  function shownView() {
    if (!recording.start) return app.connection instanceof LoggedOut ? "loggedOut" : app.connection instanceof Error ? "unrecorded" : source.canAct ? "loading" : "waiting";
    return Object.hasOwn(VIEWS, state.get().view) ? state.get().view : "timeline";
  }

  function show(name) {
    mounted?.view?.destroy();
    clear(main);
    main.scrollTop = 0;
    if (emptyStates[name]) {
      main.append(h("div", { class: "empty" }, emptyStates[name]()));
      mounted = { name, view: null };
    } else mounted = { name, view: VIEWS[name](main, app) };
  }

  const soon = inNextFrame(update);
  let pause = 0;
  recording.on(() => {
    changes.add("records");
    if (mounted?.name === "timeline" || !mounted?.view) soon();
    else {
      pause ||= setTimeout(() => {
        pause = 0;
        soon();
      }, UPDATE_PAUSE);
    }
  });
  state.subscribe((current, names) => {
    for (const name of names) changes.add(name);
    soon();
  });
  source.follow((records) => recording.add(records), (connection) => {
    app.connection = connection;
    if (recording.start) showConnection(notice, connection);
    changes.add("connection");
    soon();
  });
  soon();
}

function showFailure(notice, source) {
  const text = h("pre", { tabindex: "0", "aria-label": "Failure" }, source.failure);
  notice.hidden = false;
  clear(notice,
    h("strong", {}, "Failed"),
    text,
    h("button", { class: "button small", on: { click: () => { notice.hidden = true; } } }, "Hide"));
  text.scrollTop = text.scrollHeight; // the reason is at the end
}

// Says that the stream has ended for a reason that waiting doesn't remove.
function showConnection(notice, connection) {
  notice.hidden = !(connection instanceof Error);
  if (notice.hidden) return;
  clear(notice, connection instanceof LoggedOut
    ? [h("strong", {}, "You are not logged in any more"), h("span", {}, "The server was started again, or another one is in its place. Open the link that this command prints:"),
      h("code", { class: "code" }, "fakeapiserver ui")]
    : [h("strong", {}, "The recording has ended"), h("span", {}, "The server that runs here now records nothing.")]);
}

// Shows a sentence for some seconds, also to screen readers.
function notify(sentence) {
  document.querySelector(".toast")?.remove();
  const toast = document.body.appendChild(h("div", { class: "toast", role: "status" }, sentence));
  setTimeout(() => toast.remove(), 5000);
}

boot();
