// The details of one request: what was asked, by whom, what became of it, what it changed, and how to send it again.

import { causesView, objectAnchor } from "./causeview.js";
import { admissionView, changesView, diffView } from "./diffview.js";
import { bytes, clear, clockTime, counted, dateTime, duration, h } from "./dom.js";
import { copyLine, faultFor, faultLines, requestLines } from "./repeat.js";
import { why } from "./why.js";

const LONGEST_BODY = 200_000;
const REQUEST_TABS = [["changes", "Changes"], ["body", "Body"], ["answer", "Answer"], ["admission", "Admission"], ["joins", "Causes and effects"], ["repeat", "Repeat"]];

export function mountRequest(container, app) {
  const { recording, source, state } = app;
  const element = container.appendChild(h("article", { class: "details request" }));
  let shown = null; // {seq, details, causes}
  let chosen = ""; // a tab

  function update() {
    const { request: seq } = state.get();
    if (shown?.seq === seq) return;
    shown = { seq, details: undefined, causes: [] };
    draw();
    load(shown);
  }

  async function load(current) {
    const request = recording.request(current.seq);
    try {
      current.details = await source.request(current.seq);
      if (request?.status >= 400) current.causes = await why(recording, source, { request: current.seq }, null);
    } catch (error) {
      current.error = error.message;
    }
    current.details ??= null;
    if (shown === current) draw();
  }

  function draw() {
    const request = recording.request(shown.seq);
    if (!request) {
      clear(element, h("p", { class: "muted" }, `There is no request ${shown.seq} in this recording, or it is forgotten.`));
      return;
    }
    const tabs = REQUEST_TABS.filter(([name]) => isUseful(name, request, shown.details));
    const tab = tabs.some(([name]) => name === chosen) ? chosen : tabs[0][0];
    clear(element,
      heading(request),
      request.message ? h("p", { class: "refusal" }, request.message) : null,
      shown.causes.length ? h("section", { "aria-label": "Why" }, h("h2", {}, "Why"), causesView(shown.causes, app)) : null,
      facts(request, app),
      tabList(tabs, tab),
      h("div", { class: "tab-body", role: "tabpanel", id: "request-tab", "aria-label": tabs.find(([name]) => name === tab)[1] }, tabBody(tab, request)));
  }

  function tabList(tabs, tab) {
    return h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the request" }, tabs.map(([name, title], index) => h("button", {
      role: "tab", "aria-selected": String(name === tab), "aria-controls": "request-tab", tabindex: name === tab ? "0" : "-1",
      on: { click: () => choose(name), keydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) choose(tabs[(index + step + tabs.length) % tabs.length][0]);
      } },
    }, title)));
  }

  function choose(name) {
    chosen = name;
    draw();
    element.querySelector("[role=tab][aria-selected=true]").focus();
  }

  function tabBody(tab, request) {
    const { details, error } = shown;
    if (tab === "joins") return joinsView(request, app);
    if (tab === "repeat") return repeatView(request, details, app);
    if (error) return h("p", { class: "danger-text" }, error);
    if (details === undefined) return h("p", { class: "muted" }, "Loading…");
    if (details === null) return h("p", { class: "muted" }, "The bodies of this request are not kept.");
    if (tab === "body") return bodyView(details.body);
    if (tab === "answer") return bodyView(details.answer);
    if (tab === "admission") return admissionView(details.admission);
    const [before, after] = [details.before ?? null, details.after ?? null];
    return [before && after ? changesView(before, after) : null, diffView(before, after)];
  }

  update();
  return { update, destroy: () => element.remove() };
}

function isUseful(name, request, details) {
  if (name === "changes") return Boolean(details && (details.before || details.after));
  if (name === "body") return Boolean(details && details.body !== null && details.body !== undefined);
  if (name === "answer") return Boolean(details && details.answer !== null && details.answer !== undefined);
  if (name === "admission") return Boolean(details?.admission?.length);
  return true;
}

function heading(request) {
  const isRefused = request.status >= 400 || !request.status;
  return h("header", {},
    h("p", { class: "muted" }, `Request ${request.seq}`),
    h("h1", {}, `${request.verb} ${request.r || request.path}${request.sub ? `/${request.sub}` : ""}`, request.name ? ` ${request.name}` : ""),
    h("p", { class: "badges" },
      h("span", { class: `badge ${isRefused ? "danger" : "ok"}` }, `${request.status || "no answer"} ${request.reason || ""}`.trim()),
      request.dry ? h("span", { class: "badge accent" }, "dry run") : null,
      request.fault ? h("span", { class: "badge warn" }, `fault ${request.fault}`) : null));
}

function facts(request, app) {
  const { recording, state } = app;
  const reconcile = recording.reconcile(request.reconcile);
  const rows = [
    ["Object", request.name && request.r ? objectAnchor(app, request, `${request.ns ? `${request.ns}/` : ""}${request.name}`) : null],
    ["Client", h("span", { title: request.agent }, request.client, h("span", { class: "muted" }, ` (${request.agent})`))],
    ["User", request.user],
    ["Path", h("code", {}, `${request.path}${request.query ? `?${request.query}` : ""}`)],
    ["When", `${duration(request.at)} after the beginning; cluster time ${dateTime(request.time).slice(0, 10)} ${clockTime(request.time)}`],
    ["Took", duration(request.ms / 1000)],
    ["Revision", request.rev ? h("a", { href: state.link({ moment: request.rev }) }, `${request.rev}${request.changed ? ", written by it" : ""}`) : null],
    ["Allowed by", request.status !== 403 ? request.why : null],
    ["Changed by", request.admission?.length ? request.admission.join(", ") : null],
    ["Watch", watchText(recording.watches.get(request.seq))],
    ["Reconcile", reconcile ? `${reconcile.controller}, of ${reconcile.key}` : null],
    ["Size", `${bytes(request.bytes_in)} sent, ${bytes(request.bytes_out)} received`],
  ];
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

const WATCH_ENDS = { time: "its time was over", client: "the client has gone", server: "the server ended it", error: "an error was its last event", cut: "it was cut",
  saved: "the state was saved with which this server began" };

// How many events a watch has sent so far, and how it has ended.
function watchText(watch) {
  if (!watch) return null;
  const sent = watch.end?.events ?? watch.deliveries.reduce((sum, delivery) => sum + delivery.rev.length, 0);
  return `${counted(sent, "event")}, ${watch.end ? `then ${WATCH_ENDS[watch.end.ended] ?? "it ended"}` : "and it goes on"}`;
}

function bodyView(body) {
  const text = typeof body === "string" ? body : JSON.stringify(body, null, 2);
  const shortened = text.length > LONGEST_BODY ? `${text.slice(0, LONGEST_BODY)}\n… ${bytes(text.length - LONGEST_BODY)} more` : text;
  return h("pre", { class: "code", tabindex: "0" }, shortened);
}

// The records that led to the request and those that followed from it, one step in each direction, as links.
function joinsView(request, app) {
  const { recording } = app;
  const reconcile = recording.reconcile(request.reconcile);
  const states = recording.effectsOf(request);
  return [
    h("h2", {}, "Led to it"),
    reconcile ? h("ul", { class: "joins" },
      h("li", {}, `${reconcile.controller} reconciled ${reconcile.key}`),
      recording.causesOf(reconcile).map((cause) => stepView(cause, app)))
      : h("p", { class: "muted" }, request.bundled ? "No reconcile is recorded for it." : "It came from a client outside of the server."),
    h("h2", {}, "Followed from it"),
    recording.watches.has(request.seq) ? deliveredView(recording.watches.get(request.seq), app) : states.length ? states.map((state) => effectView(state, app)) : h("p", { class: "muted" }, "It wrote nothing."),
  ];
}

function stepView(record, app) {
  if (record.t !== "state") return h("li", {}, `an earlier reconcile of ${record.key} asked for it`);
  const writer = app.recording.request(record.by);
  return h("li", {}, "because of ", objectAnchor(app, record), ` at revision ${record.rev}`,
    writer ? [", written by ", requestAnchor(writer, app)] : null);
}

function requestAnchor(request, app) {
  return h("a", { href: app.state.link({ request: request.seq }) }, `${request.client} (${request.verb} #${request.seq})`);
}

const MOST_EFFECTS = 30;

// The newest states that a watch has sent.
function deliveredView({ deliveries }, app) {
  const states = deliveries.slice(-MOST_EFFECTS).flatMap((delivery) => delivery.rev).map((rev) => app.recording.state(rev)).filter(Boolean).slice(-MOST_EFFECTS);
  if (!states.length) return h("p", { class: "muted" }, "It has sent no change that is in this recording.");
  return h("ul", { class: "joins" }, states.reverse().map((state) => h("li", {}, "sent ", objectAnchor(app, state), " of revision ",
    h("a", { href: app.state.link({ moment: state.rev }) }, state.rev))));
}

function effectView(state, app) {
  const { deliveries, reconciles } = app.recording.effects(state.rev);
  const items = [
    ...deliveries.map(({ watch }) => h("li", {}, `sent to the watch of ${watch?.request.client ?? "a client"}`)),
    ...reconciles.map((reconcile) => h("li", {}, `${reconcile.controller} reconciled ${reconcile.key}`, app.recording.effectsOf(reconcile)
      .filter((each) => each.t === "request").map((request) => [": ", requestAnchor(request, app)]))),
  ];
  return [
    h("p", {}, objectAnchor(app, state), ` ${{ create: "created", delete: "deleted" }[state.op] ?? "changed"} at revision `,
      h("a", { href: app.state.link({ moment: state.rev }) }, state.rev)),
    h("ul", { class: "joins" }, items.slice(0, MOST_EFFECTS), items.length > MOST_EFFECTS ? h("li", { class: "muted" }, `and ${items.length - MOST_EFFECTS} more`) : null),
  ];
}

function repeatView(request, details, app) {
  const kind = app.recording.kind(request.r);
  return [
    h("h2", {}, "Send it again"),
    requestLines(request, kind, details?.body ?? null).map(([name, line]) => copyLine(name, line, app)),
    h("h2", {}, "Let the next one like it fail"),
    faultLines(faultFor(request)).map(([name, line]) => copyLine(name, line, app)),
    app.source.canAct ? h("p", {}, h("a", { class: "button small", href: app.state.link({ view: "levers" }) }, "Add this fault under Levers")) : null,
  ];
}
