// "Who can VERB RESOURCE": the subjects whom RBAC allows something in a namespace, with the binding and the rule.

import { objectAnchor } from "./causeview.js";
import { clear, h } from "./dom.js";
import { RBAC, whoCan } from "./graphedges.js";
import { World } from "./world.js";

const RBAC_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

export function whoCanView(container, app) {
  const verb = h("select", { "aria-label": "Verb", on: { change: () => draw() } }, RBAC_VERBS.map((one) => h("option", {}, one)));
  const kind = h("select", { "aria-label": "Resource", on: { change: () => draw() } });
  const where = h("span", { class: "muted" });
  const answer = h("div", { role: "status" });
  const element = container.appendChild(h("div", { class: "who-can" }, h("form", { on: { submit: (event) => event.preventDefault() } }, "Who can", verb, kind, where), answer));
  let shown = "";

  function update() {
    const kinds = [...app.recording.kinds.values()].sort((a, b) => a.r.localeCompare(b.r));
    const names = kinds.map((one) => one.r).join();
    if (kind.dataset.names !== names) {
      kind.dataset.names = names;
      const before = kind.value || "pods";
      clear(kind, kinds.map((one) => h("option", { value: one.r }, one.r)));
      kind.value = before;
    }
    draw();
  }

  async function draw() {
    const { ns, moment } = app.state.get();
    const world = new World(app.recording, app.source, moment);
    const { resource, group } = app.recording.kind(kind.value);
    where.textContent = ns ? `in namespace ${ns}?` : "in all namespaces?";
    const [roles, clusterRoles, bindings, clusterBindings] = await Promise.all(["roles", "clusterroles", "rolebindings", "clusterrolebindings"].map((name) => world.all(`${name}.${RBAC}`)));
    const found = whoCan({ verb: verb.value, resource, group, ns }, { roles, clusterRoles, bindings, clusterBindings });
    const text = JSON.stringify([found, verb.value, kind.value, ns]);
    if (text === shown) return;
    shown = text;
    if (!found.length) clear(answer, h("p", { class: "muted" }, "No role that is bound to a subject allows it."));
    else clear(answer, h("table", {}, h("thead", {}, h("tr", {}, ["Subject", "Binding", "Role", "Rule"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, found.map((one) => h("tr", {}, h("td", {}, subjectView(one.subject, one.binding)), h("td", {}, link(one.binding)), h("td", {}, link(one.role)), h("td", { class: "mono" }, ruleText(one.rule)))))));
  }

  function link(object) {
    return objectAnchor(app, { r: `${object.kind.toLowerCase()}s.${RBAC}`, ns: object.metadata.namespace ?? "", name: object.metadata.name });
  }

  function subjectView({ kind: subjectKind, name, namespace }, binding) {
    if (subjectKind !== "ServiceAccount") return `${subjectKind} ${name}`;
    const ns = namespace ?? binding.metadata.namespace;
    return ["ServiceAccount ", objectAnchor(app, { r: "serviceaccounts", ns, name }, `${ns}/${name}`)];
  }

  return { update };
}

function ruleText({ verbs, apiGroups, resources, resourceNames }) {
  return `${(verbs ?? []).join(",")} ${(resources ?? []).join(",")}${(apiGroups ?? []).some(Boolean) ? ` (${apiGroups.join(",")})` : ""}${resourceNames ? ` [${resourceNames.join(",")}]` : ""}`;
}
