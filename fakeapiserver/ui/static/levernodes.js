// The levers of simulated nodes: stop, start, shortage of a resource, and scripts of what containers do.

import { clear, h } from "./dom.js";
import { leverSection, lookUp } from "./lever.js";
import { pythonValue } from "./repeat.js";

const NODES = "/fakeapiserver/nodes";
const SCRIPTS = "/fakeapiserver/scripts";
const RESOURCES = ["memory", "ephemeral-storage", "pids"];
const EXAMPLE = '{"name": "web-*", "ready_after": 30}';

export function mountNodeLevers(app, board) {
  const list = h("ul", { class: "lever-list" });
  const script = h("textarea", { rows: 2, "aria-label": "Script of containers, as JSON", spellcheck: "false", value: EXAMPLE });

  const run = (name, runs) => ({
    title: `${runs ? "Start" : "Stop"} ${name}`, method: "PUT", path: `${NODES}/${name}`, body: { runs }, python: `cluster.nodes.${runs ? "start" : "stop"}(${JSON.stringify(name)})`,
  });
  const press = (name, resource) => ({
    title: `Let ${name} be short of ${resource}`, method: "PUT", path: `${NODES}/${name}/pressure`, body: { resource },
    python: `cluster.nodes.press(${JSON.stringify(name)}, ${JSON.stringify(resource)})`,
  });
  const relieve = (name) => ({
    title: `Relieve ${name}`, method: "DELETE", path: `${NODES}/${name}/pressure`, python: `cluster.nodes.relieve(${JSON.stringify(name)})`,
  });

  function addScript() {
    let body;
    try {
      body = JSON.parse(script.value);
    } catch (error) {
      app.notify(`The script is not JSON: ${error.message}`);
      return null;
    }
    const named = Object.entries(body).map(([name, value]) => `${name}=${pythonValue(value)}`).join(", ");
    return { title: "Add the script", method: "POST", path: SCRIPTS, body, python: `cluster.nodes.script(${named})` };
  }

  const clearScripts = () => ({ title: "Remove all scripts", method: "DELETE", path: SCRIPTS, python: "cluster.nodes.clear_scripts()" });

  function nodeRow(name) {
    const state = h("span", { class: "badge" });
    const [stop, start] = [false, true].map((runs) => board.button(runs ? "Start" : "Stop", () => run(name, runs)));
    const resource = h("select", { "aria-label": `Resource that ${name} is short of` }, RESOURCES.map((each) => h("option", {}, each)));
    const element = h("li", {}, h("span", { class: "node-name" }, name, " ", state), h("div", { class: "segments" }, stop, start), resource,
      board.button("Press", () => press(name, resource.value)), board.button("Relieve", () => relieve(name)));
    const show = ({ runs }) => {
      state.className = runs ? "badge ok" : "badge danger";
      state.textContent = runs ? "runs" : "stopped";
      stop.setAttribute("aria-pressed", String(!runs));
      start.setAttribute("aria-pressed", String(runs));
    };
    return { element, show };
  }

  const rowOf = new Map();
  return {
    element: leverSection("Nodes", list,
      h("label", { class: "lever-field" }, "What containers of matching pods do ", script),
      h("div", { class: "lever-row" }, board.button("Add the script", addScript), board.button("Remove all scripts", clearScripts))),
    async refresh() {
      const { value, error } = await lookUp(app, NODES);
      if (error) {
        clear(list, h("li", { class: "muted" }, error));
        return;
      }
      if (value.length !== rowOf.size) {
        rowOf.clear();
        for (const { name } of value) rowOf.set(name, nodeRow(name));
        clear(list, [...rowOf.values()].map((row) => row.element));
      }
      for (const node of value) rowOf.get(node.name)?.show(node);
    },
  };
}
