// An object's YAML with the managers of its fields: their colours and letters beside the lines, a legend, and who owns the chosen line.

import { dateTime, h } from "./dom.js";
import { fieldOwners } from "./fields.js";
import { yamlLines, yamlLineText } from "./yamllines.js";

const OWNER_COLOURS = 8;
// Lines beyond are shown when asked for.
const MOST_LINES = 4000;

function ownerLetter(id) {
  return id < 26 ? String.fromCharCode(97 + id) : String(id + 1);
}

function ownerText({ manager, operation, subresource, time }) {
  return `${manager} (${operation}${subresource ? ` of ${subresource}` : ""}${time ? `, ${dateTime(time)}` : ""})`;
}

// Returns the element; `owners: false` leaves the managers out.
export function yamlView(object, { owners: withOwners = true } = {}) {
  const lines = yamlLines(object);
  const owners = withOwners ? fieldOwners(object) : [];
  const counts = new Map(owners.map((owner) => [owner.id, 0]));
  for (const line of lines) for (const id of line.owners) if (!line.isBranch && !line.block) counts.set(id, (counts.get(id) ?? 0) + 1);
  const note = h("p", { class: "owner-note", role: "status" });
  const code = h("div", { class: "yaml code", tabindex: "0", role: "listbox", "aria-label": "Fields of the object, with their managers" });
  const legend = owners.length ? legendView(owners, counts, code) : null;
  const elements = [];
  let active = -1;

  function show(index) {
    const line = lines[index];
    elements[active]?.classList.remove("active");
    elements[active]?.setAttribute("aria-selected", "false");
    active = index;
    elements[index]?.classList.add("active");
    elements[index]?.setAttribute("aria-selected", "true");
    code.setAttribute("aria-activedescendant", elements[index]?.id ?? "");
    const names = line.owners.map((id) => ownerText(owners[id]));
    note.textContent = `${pathText(line.path)}: ${names.length ? names.join(" and ") : owners.length ? "no manager" : ""}`;
  }

  function drawTo(count) {
    for (let index = elements.length; index < Math.min(count, lines.length); index += 1) {
      const element = lineView(lines[index], lines[index - 1], index);
      elements.push(element);
      code.append(element);
    }
    if (count < lines.length) code.append(h("button", { class: "button small", on: { click: (event) => { event.target.remove(); drawTo(lines.length); } } }, `Show ${lines.length - count} more lines`));
  }

  drawTo(MOST_LINES);
  code.addEventListener("mouseover", (event) => {
    const index = elements.indexOf(event.target.closest(".yaml-line"));
    if (index >= 0) show(index);
  });
  code.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    show(Math.max(0, Math.min(elements.length - 1, active + step)));
    elements[active].scrollIntoView({ block: "nearest" });
  });
  return h("div", { class: "yaml-view" }, legend, owners.length ? note : null, code);
}

function pathText(path) {
  return path.map((step, index) => (typeof step === "number" ? `[${step}]` : `${index ? "." : ""}${/^[\w-]+$/.test(step) ? step : JSON.stringify(step)}`)).join("");
}

function lineView(line, previous, index) {
  const isNew = !previous || previous.owners.join() !== line.owners.join();
  const marks = line.owners.map((id) => h("span", { class: `owner owner-${id % OWNER_COLOURS}` }, isNew ? ownerLetter(id) : ""));
  const text = yamlLineText(line);
  const lead = text.length - text.trimStart().length;
  const parts = [" ".repeat(lead)];
  if (line.dash) parts.push(h("span", { class: "yaml-dash" }, "- ".repeat(line.dash)));
  if (line.key !== null) parts.push(h("span", { class: "yaml-key" }, line.key), ":", line.value === null ? "" : " ");
  if (line.value !== null) parts.push(h("span", { class: valueClass(line) }, line.value));
  return h("div", { class: `yaml-line${line.owners.length ? ` owned owner-${line.owners[0] % OWNER_COLOURS}` : ""}`, role: "option", id: `yaml-${index}`, "aria-selected": "false", data: { owners: ` ${line.owners.join(" ")} ` } },
    h("span", { class: "owners" }, marks), h("span", { class: "yaml-text" }, parts));
}

function valueClass({ value, block }) {
  if (block || value === null || /^["|]/.test(value)) return "yaml-string";
  return /^(?:true|false|null|[-\d.]+|\[\]|\{\})$/.test(value) ? "yaml-word" : "yaml-string";
}

function legendView(owners, counts, code) {
  let chosen = null;
  const mark = (id) => {
    for (const line of code.children) line.classList.toggle("dim", id !== null && !(line.dataset.owners ?? "").includes(` ${id} `));
  };
  const buttons = owners.map((owner) => h("button", {
    class: "owner-chip", "aria-pressed": "false", title: ownerText(owner),
    on: {
      mouseenter: () => chosen === null && mark(owner.id),
      mouseleave: () => chosen === null && mark(null),
      click: (event) => {
        chosen = chosen === owner.id ? null : owner.id;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget && chosen !== null));
        mark(chosen);
      },
    },
  },
  h("span", { class: `owner owner-${owner.id % OWNER_COLOURS}` }, ownerLetter(owner.id)),
  h("span", { class: "owner-name" }, owner.manager),
  h("span", { class: "muted" }, `${owner.operation}${owner.subresource ? ` ${owner.subresource}` : ""} · ${counts.get(owner.id)} ${counts.get(owner.id) === 1 ? "field" : "fields"}${
    owner.time ? ` · ${dateTime(owner.time).slice(11)}` : ""}`)));
  return h("div", { class: "legend", role: "group", "aria-label": "Managers of the fields (metadata.managedFields)" }, buttons);
}
