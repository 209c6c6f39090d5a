// The levers of faults: those that there are with their hits, and a form that adds one, filled in from the selected request.

import { clear, h } from "./dom.js";
import { leverSection, lookUp } from "./lever.js";
import { faultFor, faultLines } from "./repeat.js";

const FAULTS = "/fakeapiserver/faults";
const FAULT_VERBS = ["", "get", "list", "watch", "create", "update", "patch", "delete", "read", "write"];
// Effects: the field, its title, and the value that the form begins with; true needs none.
const EFFECTS = [
  ["status", "answer with the status", "409"], ["latency", "wait, in seconds", "2"], ["hang", "never answer", true], ["reset", "reset the connection", "before"],
  ["delay", "send watch events later, in seconds", "5"], ["stop_after", "end the watch after events", "1"], ["stale", "serve old state, in revisions", "10"],
];
const TEXTS = [["resource", "Resource", "deployments"], ["namespace", "Namespace", "shop"], ["name", "Name", "web-*"], ["user_agent", "User agent", "my-operator*"]];

export function mountFaultLevers(app, board) {
  const list = h("ul", { class: "lever-list" });
  const verb = h("select", { "aria-label": "Verb" }, FAULT_VERBS.map((each) => h("option", { value: each }, each || "any verb")));
  const texts = new Map(TEXTS.map(([name, title, example]) => [name, h("input", { type: "text", "aria-label": title, placeholder: `${title}: ${example}`, spellcheck: "false" })]));
  const effect = h("select", { "aria-label": "Effect", on: { change: chooseEffect } }, EFFECTS.map(([name, title]) => h("option", { value: name }, title)));
  const amount = h("input", { type: "text", size: 6, value: "409", "aria-label": "Value of the effect", spellcheck: "false" });
  const times = h("input", { type: "number", min: 1, value: "1", "aria-label": "How many requests are struck" });
  const bundled = h("input", { type: "checkbox" });
  const fromRequest = h("button", { type: "button", class: "button small quiet", on: { click: fillIn } }, "Fill in from the selected request");

  function chooseEffect() {
    const [, , value] = EFFECTS.find(([name]) => name === effect.value);
    amount.hidden = value === true;
    amount.value = value === true ? "" : value;
  }

  function fillIn() {
    const request = app.recording.request(app.state.get().request);
    if (!request) return;
    const fault = faultFor(request);
    verb.value = FAULT_VERBS.includes(fault.verb) ? fault.verb : "";
    for (const [name, input] of texts) input.value = fault[name] ?? "";
    effect.value = "status";
    chooseEffect();
    amount.value = String(fault.status);
    bundled.checked = fault.bundled === true;
  }

  function fault() {
    const fields = {};
    if (verb.value) fields.verb = verb.value;
    for (const [name, input] of texts) if (input.value.trim()) fields[name] = input.value.trim();
    if (bundled.checked) fields.bundled = true;
    fields[effect.value] = amount.hidden ? true : valueOf(amount.value.trim());
    if (times.value) fields.times = Number(times.value);
    return fields;
  }

  const add = () => {
    const fields = fault();
    const [[, shell], [, python]] = faultLines(fields);
    return { title: "Add the fault", method: "POST", path: FAULTS, body: fields, shell, python, done: ([added]) => `Fault ${added.id} is added.` };
  };
  const remove = (id) => ({ title: `Remove fault ${id}`, method: "DELETE", path: `${FAULTS}/${id}`, shell: `fakeapiserver faults remove ${id}`, python: "fault.remove()" });
  const removeAll = () => ({ title: "Remove all faults", method: "DELETE", path: FAULTS, shell: "fakeapiserver faults clear", python: "cluster.faults.clear()" });

  function row({ id, fault: fields, seen, hits }) {
    const text = Object.entries(fields).map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : value}`).join(" ");
    return h("li", {}, h("span", {}, h("code", {}, text), h("span", { class: "muted" }, ` ${hits} of ${seen} matching requests struck`)), board.button("Remove", () => remove(id)));
  }

  return {
    element: leverSection("Faults", list,
      h("div", { class: "lever-form", role: "group", "aria-label": "A fault to add" }, verb, [...texts.values()], effect, amount,
        h("label", {}, "times ", times), h("label", {}, bundled, " bundled controllers, too")),
      h("div", { class: "lever-row" }, board.button("Add the fault", add, { class: "button small primary" }), board.button("Remove all faults", removeAll), fromRequest)),
    update() {
      fromRequest.disabled = app.state.get().request === null;
    },
    async refresh() {
      fromRequest.disabled = app.state.get().request === null;
      const { value, error } = await lookUp(app, FAULTS);
      clear(list, error ? h("li", { class: "muted" }, error) : value.length ? value.map(row) : h("li", { class: "muted" }, "There are no faults."));
    },
  };
}

// A number where the text is one.
function valueOf(value) {
  return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}
