// The revisions of one object: who wrote each, what it changed, what admission changed on the way, and the rule that allowed it.

import { capitalised } from "./cause.js";
import { linkView, objectAnchor } from "./causeview.js";
import { admissionView, changesView, diffView } from "./diffview.js";
import { clear, clockTime, h } from "./dom.js";

const PAGE = 20;
const WRITE_WORDS = { base: "was there", create: "created", update: "updated", delete: "deleted" };

// Draws into `container`; update(ref, head) shows all objects that ever had the name, the newest revision first.
export function objectHistory(app, container) {
  const list = h("ol", { class: "revisions" });
  const more = h("button", { class: "button small", on: { click: () => { shown += PAGE; draw(); } } });
  clear(container, list, more);
  const drawn = new Map(); // revision -> element
  let states = [];
  let shown = PAGE;
  let name = "";

  function update(ref) {
    const { recording } = app;
    const key = `${ref.r}/${ref.ns}/${ref.name}`;
    if (key !== name) {
      shown = PAGE;
      drawn.clear();
    }
    name = key;
    states = recording.uidsNamed(ref.r, ref.ns, ref.name).flatMap((uid) => recording.history(uid)).sort((a, b) => b.rev - a.rev);
    draw();
  }

  function draw() {
    const { moment } = app.state.get();
    const current = states.find((state) => moment === null || state.rev <= moment);
    const page = states.slice(0, Math.max(shown, states.indexOf(current) + 3));
    const elements = page.map((state, index) => {
      if (!drawn.has(state.rev)) drawn.set(state.rev, revisionView(app, state, earlier(state, index)));
      const element = drawn.get(state.rev);
      element.classList.toggle("current", state === current);
      return element;
    });
    list.replaceChildren(...elements);
    more.hidden = page.length >= states.length;
    more.textContent = `Show ${Math.min(PAGE, states.length - page.length)} of ${states.length - page.length} older`;
  }

  function earlier(state, index) {
    return state.op === "create" || state.op === "base" ? null : states.slice(index + 1).find((one) => one.uid === state.uid) ?? null;
  }

  return { update };
}

function revisionView(app, state, before) {
  const request = app.recording.request(state.by);
  const body = h("div", { class: "revision-body" });
  const element = h("li", { class: `revision ${state.op}` },
    h("p", { class: "revision-head" },
      linkView({ label: `${state.rev}`, ref: { moment: state.rev, panel: "object", tab: "history" } }, app),
      h("time", { class: "muted mono" }, clockTime(state.time)),
      request ? writerView(app, request, state) : h("span", {}, WRITE_WORDS[state.op], state.op === "base" ? " when the recording began" : "")),
    body);
  const load = async () => {
    const wanted = before ? [before.rev, state.rev] : [state.rev];
    const loaded = await app.source.states(wanted, { objects: true });
    const after = state.op === "delete" ? null : loaded.get(state.rev)?.object ?? null;
    fillRevision(app, body, state, before ? loaded.get(before.rev)?.object ?? null : null, after, request);
  };
  whenVisible(element, () => load().catch((error) => body.append(h("p", { class: "danger-text" }, error.message))));
  return element;
}

function writerView(app, request, state) {
  return h("span", { class: "writer" }, h("strong", {}, capitalised(request.client || "unknown")), " ", WRITE_WORDS[state.op], " it by ",
    linkView({ label: `${request.verb}${request.sub ? ` ${request.sub}` : ""}`, ref: { request: request.seq } }, app),
    request.user && !request.user.endsWith(request.client) ? h("span", { class: "muted" }, ` as ${request.user}`) : null);
}

function fillRevision(app, body, state, before, after, request) {
  const parts = [];
  if (state.op === "update") parts.push(before && after ? changesView(before, after) : h("p", { class: "muted" }, "The state before is forgotten."));
  if (state.op === "update" && before && after) parts.push(folding("Difference of the YAML", () => diffView(before, after)));
  if (state.op === "create" && after) parts.push(folding("Object as created", () => diffView(null, after)));
  if (state.op === "delete" && before) parts.push(folding("Last state", () => diffView(before, null)));
  if (request && !request.bundled && (request.admission ?? []).length) {
    parts.push(folding(`Changed by admission: ${request.admission.join(", ")}`, async () => {
      const details = await app.source.request(request.seq);
      return details?.admission ? admissionView(details.admission) : h("p", { class: "muted" }, "The steps are not kept any more.");
    }));
  }
  if (request?.why) parts.push(h("p", { class: "allowed muted" }, "Allowed: ", ruleView(app, request)));
  clear(body, parts);
}

// The authorizer's reason with links to the binding and the role that it names.
function ruleView(app, request) {
  const match = /^RBAC: allowed by (ClusterRoleBinding|RoleBinding) "([^"]+)" of (ClusterRole|Role) "([^"]+)" to (.+)$/.exec(request.why);
  if (!match) return request.why;
  const [, bindingKind, binding, roleKind, role, subject] = match;
  const anchor = (kind, text) => {
    const [name, ns] = text.split("/"); // RoleBindings and Roles of a namespace: "name/namespace"
    return objectAnchor(app, { r: `${kind.toLowerCase()}s.rbac.authorization.k8s.io`, ns: kind.startsWith("Cluster") ? "" : ns ?? request.ns ?? "", name: kind.startsWith("Cluster") ? text : name }, text);
  };
  return [`${roleKind} `, anchor(roleKind, role), `, bound by ${bindingKind} `, anchor(bindingKind, binding), ` to ${subject.replaceAll('"', "")}`];
}

function folding(title, make) {
  const details = h("details", { class: "folding" }, h("summary", {}, title));
  details.addEventListener("toggle", async () => {
    if (details.open && details.children.length === 1) details.append(await make());
  });
  return details;
}

// Calls `work` once, when the element comes into view.
function whenVisible(element, work) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    work();
  }, { rootMargin: "200px" });
  observer.observe(element);
}
