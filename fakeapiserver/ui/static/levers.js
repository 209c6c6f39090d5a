// Levers: what a test may do to the server, by hand: its clock, controllers, nodes, faults, snapshots.

import { clear, dateTime, duration, h } from "./dom.js";
import { LeverBoard, leverSection, lookUp, rawLine } from "./lever.js";
import { mountFaultLevers } from "./leverfaults.js";
import { mountForkLevers } from "./leverforks.js";
import { mountNodeLevers } from "./levernodes.js";

// While records arrive, what the levers show is looked up that often at most.
const REFRESH_PAUSE = 1000; // ms
const CONTROLLER_MODES = { run: "Run", step: "Step", off: "Off" };
const CONTROL = "/fakeapiserver";

export function mountLevers(container, app) {
  const element = container.appendChild(h("div", { class: "levers" }));
  if (!app.source.canAct) {
    element.append(h("div", { class: "empty" }, h("h1", {}, "No levers in a saved page"),
      h("p", {}, "This page is a saved file: nothing runs behind it whose clock, controllers or nodes could be moved.")));
    return { update() {}, destroy: () => element.remove() };
  }
  const board = new LeverBoard(app, () => refresh());
  const parts = [mountClock, mountControllers, mountSettle, mountNodeLevers, mountFaultLevers, mountSnapshots, mountForkLevers].map((mount) => mount(app, board));
  element.append(h("h1", { class: "sr" }, "Levers"), h("div", { class: "lever-grid" }, parts.map((part) => part.element)), board.element);
  let timer = 0;

  async function refresh() {
    await Promise.all(parts.map((part) => part.refresh?.()));
  }

  refresh();
  return {
    update(changed) {
      for (const part of parts) part.update?.(changed);
      if (!changed.has("records")) return;
      timer ||= setTimeout(() => {
        timer = 0;
        refresh();
      }, REFRESH_PAUSE);
    },
    destroy() {
      clearTimeout(timer);
      element.remove();
    },
  };
}

function mountClock(app, board) {
  const now = h("p", { class: "lever-fact" });
  const amount = h("input", { type: "text", value: "10m", size: 7, "aria-label": "Duration to advance by", spellcheck: "false" });
  let due = null;
  const put = (title, body, shell, python) => ({ title, method: "PUT", path: `${CONTROL}/clock`, body, shell, python, done: (answer) => `${title}: it is ${answer.now}.` });
  const advance = (title, text) => put(title, { advance: text }, `fakeapiserver clock advance ${text}`, `cluster.clock.advance(${JSON.stringify(text)})`);
  const next = board.button("To the next due thing", () => advance("Advance to what is due next", `${Math.ceil((due ?? 0) * 1000)}ms`));
  const stop = board.button("Stop", () => put("Stop the clock", { stopped: true }, "fakeapiserver clock stop", "cluster.clock.stop()"));
  const start = board.button("Start", () => put("Start the clock", { stopped: false }, "fakeapiserver clock start", "cluster.clock.start()"));
  const element = leverSection("Clock", now, h("div", { class: "lever-row" }, stop, start, amount,
    board.button("Advance", () => advance("Advance the clock", amount.value.trim() || "0s")), next));
  return {
    element,
    async refresh() {
      const { value, error } = await lookUp(app, `${CONTROL}/clock`);
      if (error) {
        now.textContent = error;
        return;
      }
      due = value.next_due ?? null;
      clear(now, `${dateTime(Date.parse(value.now) / 1000)} UTC, `, h("span", { class: value.stopped ? "badge warn" : "badge ok" }, value.stopped ? "stopped" : "runs"),
        due === null ? "" : h("span", { class: "muted" }, ` Next due in ${duration(due)}.`));
      stop.setAttribute("aria-pressed", String(value.stopped));
      start.setAttribute("aria-pressed", String(!value.stopped));
      next.disabled = due === null;
    },
  };
}

function mountControllers(app, board) {
  const list = h("table", { class: "lever-table" });

  function queueText(name) {
    const queue = app.recording.queues.get(name)?.at(-1);
    if (!queue) return "empty";
    return [[queue.processing, "processing"], [queue.ready, "ready"], [queue.delayed, "delayed"]].filter(([number]) => number)
      .map(([number, word]) => `${number} ${word}`).join(", ") || "empty";
  }

  const setMode = (name, mode) => ({
    title: `Set ${name} to ${mode}`, method: "PUT", path: `${CONTROL}/controllers/${name}`, body: { mode }, python: `cluster.controllers[${JSON.stringify(name)}] = ${JSON.stringify(mode)}`,
  });
  const step = (name) => ({
    title: `Step ${name}`, method: "POST", path: `${CONTROL}/controllers/${name}/step`, python: `cluster.controllers.step(${JSON.stringify(name)})`,
    done: (answer) => `${name} processed ${answer.requests} ${answer.requests === 1 ? "item" : "items"}.`,
  });

  // A row, which `show` keeps up: its buttons stay, and with them the focus.
  function controllerRow(name) {
    const failed = h("p", { class: "danger-text" });
    const modes = Object.entries(CONTROLLER_MODES).map(([value, title]) => [value, board.button(title, () => setMode(name, value))]);
    const next = board.button("Next item", () => step(name));
    const queue = h("button", { type: "button", class: "link", "aria-expanded": "false", title: "Show the items", on: { click: () => {
      contents.hidden = !contents.hidden;
      queue.setAttribute("aria-expanded", String(!contents.hidden));
      listItems();
    } } });
    const contents = h("ul", { class: "lever-items", hidden: true, "aria-label": `Queue of ${name}` });
    const element = h("tr", {}, h("th", { scope: "row" }, name, failed),
      h("td", {}, h("div", { class: "segments", role: "group", "aria-label": `Mode of ${name}` }, modes.map(([, button]) => button))),
      h("td", {}, next), h("td", {}, queue, contents));

    // Lists the items, if they are to be seen.
    async function listItems() {
      if (contents.hidden) return;
      const { value, error } = await lookUp(app, `${CONTROL}/controllers/${name}/queue`);
      const items = error ? [error] : [
        ...value.processing.map((item) => `${item} is processed`), ...value.ready,
        ...Object.entries(value.delayed).map(([item, seconds]) => `${item} in ${duration(seconds)}`),
      ];
      clear(contents, items.length ? items.map((item) => h("li", {}, item)) : h("li", { class: "muted" }, "The queue is empty."));
    }
    const show = ({ mode, failure }) => {
      failed.textContent = failure;
      for (const [value, button] of modes) button.setAttribute("aria-pressed", String(value === mode));
      next.disabled = mode !== "step";
      listItems();
    };
    return { element, show, queue };
  }

  const rowOf = new Map();
  return {
    element: leverSection("Controllers", h("div", { class: "lever-scroll", tabindex: "0", role: "group", "aria-label": "Controllers" }, list)),
    update() {
      for (const [name, { queue }] of rowOf) queue.textContent = queueText(name);
    },
    async refresh() {
      const { value, error } = await lookUp(app, `${CONTROL}/controllers`);
      if (error) {
        clear(list, h("caption", { class: "muted" }, error));
        rowOf.clear();
        return;
      }
      if (!rowOf.size) {
        for (const { name } of value) rowOf.set(name, controllerRow(name));
        clear(list, h("thead", {}, h("tr", {}, ["Controller", "Mode", "", "Queue"].map((title) => h("th", { scope: "col" }, title)))),
          h("tbody", {}, [...rowOf.values()].map((row) => row.element)));
      }
      for (const controller of value) rowOf.get(controller.name)?.show(controller);
      this.update();
    },
  };
}

function mountSettle(app, board) {
  const timeout = h("input", { type: "text", value: "10s", size: 6, "aria-label": "Time-out of settle", spellcheck: "false" });
  const lever = () => {
    const path = `${CONTROL}/settle?timeout=${encodeURIComponent(timeout.value.trim() || "10s")}`;
    return { title: "Settle", method: "POST", path, shell: rawLine("POST", path), python: "cluster.settle()", done: () => "Settled: every controller and every watch is at rest." };
  };
  return {
    element: leverSection("Settle", h("p", { class: "muted" }, "Waits until every controller is at rest; what still moves is named."),
      h("div", { class: "lever-row" }, board.button("Settle", lever), h("label", {}, "at most ", timeout))),
  };
}

function mountSnapshots(app, board) {
  const list = h("ul", { class: "lever-list" });
  const path = `${CONTROL}/snapshots`;
  const take = () => ({ title: "Take a snapshot", method: "POST", path, python: "snapshot = cluster.snapshot()", done: (answer) => `Snapshot ${answer.id} of revision ${answer.revision} is taken.` });
  const restore = (id) => ({ title: `Restore snapshot ${id}`, method: "POST", path: `${path}/${id}/restore`, python: "cluster.restore(snapshot)" });
  const forget = (id) => ({ title: `Forget snapshot ${id}`, method: "DELETE", path: `${path}/${id}` });
  const showSave = () => board.show({ shell: "fakeapiserver state save state.json.gz", python: 'cluster.save("state.json.gz")' });
  const save = h("a", { class: "button small", href: `${CONTROL}/state/save`, download: "state.json", on: { pointerenter: showSave, focus: showSave } }, "Save the state");

  return {
    element: leverSection("Snapshots", h("div", { class: "lever-row" }, board.button("Take a snapshot", take), save), list,
      h("p", { class: "muted" }, "A saved state contains its history, the requests, and the values of Secrets. ", h("code", { class: "inline-code" }, "fakeapiserver ui FILE"), " shows it.")),
    async refresh() {
      const { value, error } = await lookUp(app, path);
      clear(list, error ? h("li", { class: "muted" }, error) : value.map(({ id, revision }) => h("li", {}, h("span", {}, `Snapshot ${id}, revision ${revision}`),
        board.button("Restore", () => restore(id)), board.button("Forget", () => forget(id)))));
    },
  };
}
