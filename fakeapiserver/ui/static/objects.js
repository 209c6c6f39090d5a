// The view of objects: kinds with their counts, and the table of one kind as `kubectl get -o wide` prints it, at any moment.

import { ago, clear, h, inNextFrame, rows } from "./dom.js";
import { CellStore } from "./cells.js";
import { isEmptyFilter, matchesFilter, needsObjects, parseFilter } from "./selectors.js";
import { summaryOf, toneIcon, TONE_NAMES } from "./summary.js";

const ROW = 28;
const FIRST_KINDS = ["pods", "deployments.apps", "services", "configmaps"];
const WIDEST_COLUMN = 44; // characters of a column

export function mountObjects(container, app) {
  const kinds = h("nav", { class: "kinds", "aria-label": "Kinds" });
  const kindSelect = h("select", { class: "kind-select", "aria-label": "Kind", on: { change: (event) => choose({ kind: event.target.value }) } });
  const namespaces = h("select", { "aria-label": "Namespace", on: { change: (event) => choose({ ns: event.target.value }) } });
  const filter = h("input", {
    type: "search", class: "grow", "data-filter": true, placeholder: "Filter: text, app=web, status.phase=Pending", "aria-label": "Filter of the objects",
    spellcheck: "false", autocomplete: "off", on: { input: (event) => choose({ filter: event.target.value }, true) },
  });
  const count = h("span", { class: "muted count", role: "status" });
  const head = h("div", { class: "table-head", role: "row" });
  const body = h("div", { class: "table-body", tabindex: "0", role: "rowgroup", on: { keydown: keyed, click: clicked } });
  const scroller = h("div", { class: "table", role: "grid", "aria-label": "Objects" }, head, body);
  const empty = h("div", { class: "empty", hidden: true });
  const element = container.appendChild(h("div", { class: "objects" }, kinds,
    h("div", { class: "objects-main" }, h("div", { class: "toolbar" }, kindSelect, namespaces, filter, count), scroller, empty)));
  let cells = new CellStore(app.source);
  let { generation } = app.recording;
  const table = { heads: [], columns: [], order: [], active: -1, r: "", isWaiting: false };
  const seen = new Map(); // uid -> revision that was drawn
  const changedUntil = new Map(); // uid -> time until which the row is marked
  const list = rows(body, 0, ROW, drawRow);
  const drawSoon = inNextFrame(() => list.update(table.order.length));
  let asked = 0;
  update(new Set(["records"]));

  function choose(changes, replace = false) {
    app.state.set({ panel: app.state.get().panel, ...changes }, { replace });
  }

  function currentKind() {
    const { kind } = app.state.get();
    if (kind) return kind;
    const counts = app.recording.counts(app.state.get().moment);
    return FIRST_KINDS.find((r) => counts.get(r)) ?? "namespaces";
  }

  // ---------------------------------------------------------------- kinds

  function drawKinds() {
    const { moment } = app.state.get();
    const counts = app.recording.counts(moment);
    const all = [...app.recording.kinds.values()].sort((a, b) => a.resource.localeCompare(b.resource));
    const isCustom = (kind) => app.recording.find("customresourcedefinitions.apiextensions.k8s.io", "", kind.r, moment) !== null;
    const full = all.filter((kind) => counts.get(kind.r));
    const custom = full.filter(isCustom);
    const others = all.filter((kind) => !counts.get(kind.r));
    const workloads = full.filter((kind) => !custom.includes(kind) && isWorkload(kind.r));
    const rest = full.filter((kind) => !custom.includes(kind) && !isWorkload(kind.r));
    const groups = [["Custom", custom], ["Workloads", workloads], ["Others", rest], ["Without objects", others]].filter(([, list]) => list.length);
    const text = JSON.stringify([currentKind(), groups.map(([, list]) => list.map((kind) => [kind.r, counts.get(kind.r)]))]);
    if (text === kinds.dataset.shown) return;
    kinds.dataset.shown = text;
    const isOpen = kinds.querySelector("details")?.open ?? false;
    const scroll = kinds.scrollTop;
    clear(kinds, groups.map(([title, list]) => {
      const items = h("ul", {}, list.map((kind) => kindItem(kind, counts.get(kind.r) ?? 0)));
      return title === "Without objects" ? h("details", { open: isOpen }, h("summary", {}, `${list.length} kinds without objects`), items) : [h("h2", {}, title), items];
    }));
    kinds.scrollTop = scroll;
    clear(kindSelect, groups.map(([title, list]) => h("optgroup", { label: title }, list.map((kind) =>
      h("option", { value: kind.r }, `${kind.resource} (${counts.get(kind.r) ?? 0})`)))));
    kindSelect.value = currentKind();
  }

  function kindItem(kind, number) {
    return h("li", {}, h("a", { href: app.state.link({ kind: kind.r, panel: app.state.get().panel }), "aria-current": kind.r === currentKind() ? "page" : null,
      title: `${kind.r} ${kind.version}` }, h("span", { class: "kind-name" }, kind.resource, kind.group && isAmbiguous(kind) ? h("span", { class: "muted" }, ` ${kind.group}`) : null),
    h("span", { class: "number" }, number.toLocaleString("en"))));
  }

  function isAmbiguous(kind) {
    return [...app.recording.kinds.values()].some((other) => other.resource === kind.resource && other.r !== kind.r);
  }

  // ---------------------------------------------------------------- rows

  // The objects that pass the filter, in their order. Cells and objects are loaded only where the filter or the order needs them all.
  async function prepare() {
    const turn = asked += 1;
    const { moment, ns, sort, filter: text } = app.state.get();
    const r = currentKind();
    const all = app.recording.ofKind(r, moment);
    const parsed = parseFilter(text);
    let heads = ns ? all.filter((one) => one.ns === ns || !one.ns) : all;
    const column = sort.replace(/^-/, "");
    const needsCells = parsed.texts.length > 0 || (column !== "" && !["Name", "Namespace", "Age"].includes(column));
    let objects = null;
    if (!isEmptyFilter(parsed) || needsCells) {
      const byLabels = parseFilter("");
      byLabels.labels = parsed.labels;
      heads = heads.filter((one) => matchesFilter(byLabels, one, null, null));
      if (needsCells) await cells.load(heads);
      if (needsObjects(parsed)) objects = await app.source.states(heads.map((one) => one.rev), { objects: true });
      if (turn !== asked) return;
      heads = heads.filter((one) => matchesFilter(parsed, one, cells.get(one.rev), objects?.get(one.rev)?.object));
    }
    table.r = r;
    table.total = all.length;
    table.heads = sorted(heads, sort);
    await loadVisible();
    if (turn === asked) drawTable();
  }

  function sorted(heads, sort) {
    const column = sort.replace(/^-/, "");
    const byName = (a, b) => a.ns.localeCompare(b.ns) || a.name.localeCompare(b.name, "en", { numeric: true });
    const index = app.source.columns(table.r).findIndex((one) => one.name === column);
    const compare = column === "Age" ? (a, b) => b.created - a.created
      : column === "Name" ? (a, b) => a.name.localeCompare(b.name, "en", { numeric: true })
        : index < 0 || column === "Namespace" ? byName
          : (a, b) => compareCells(cells.get(a.rev)?.[index], cells.get(b.rev)?.[index]) || byName(a, b);
    const list = [...heads].sort(compare);
    return sort.startsWith("-") ? list.reverse() : list;
  }

  async function loadVisible() {
    const first = Math.max(0, Math.floor(body.scrollTop / ROW) - 20);
    const last = Math.ceil((body.scrollTop + Math.max(body.clientHeight, 600)) / ROW) + 20;
    await cells.load(table.heads.slice(first, last));
  }

  function drawTable() {
    const known = app.source.columns(table.r);
    const isNamespaced = app.recording.kind(table.r).namespaced;
    table.columns = known.length ? known : [{ name: "Name" }, { name: "Age" }];
    table.withNamespace = isNamespaced && !app.state.get().ns;
    table.order = table.heads;
    if (table.active >= table.order.length) table.active = table.order.length - 1;
    measure();
    drawHead();
    drawNamespaces();
    const { length } = table.order;
    count.textContent = length === table.total ? `${length.toLocaleString("en")} ${length === 1 ? "object" : "objects"}` : `${length.toLocaleString("en")} of ${table.total.toLocaleString("en")}`;
    scroller.setAttribute("aria-rowcount", String(length + 1));
    empty.hidden = length > 0;
    scroller.hidden = length === 0;
    if (!length) drawEmpty();
    list.update(length);
  }

  function drawEmpty() {
    const { resource } = app.recording.kind(table.r);
    const { filter: text, ns, moment } = app.state.get();
    clear(empty, h("h2", {}, text || ns ? `No ${resource} match` : `There are no ${resource}${moment === null ? "" : " at this moment"}`),
      text || ns ? h("p", {}, h("button", { class: "button", on: { click: () => { filter.value = ""; choose({ filter: "", ns: "" }); } } }, "Clear the filter"))
        : h("p", {}, "Choose another kind, or create one: ", h("code", {}, `kubectl create -f …`)));
  }

  function drawNamespaces() {
    const { ns, moment } = app.state.get();
    const names = app.recording.ofKind("namespaces", moment).map((one) => one.name).sort();
    if (ns && !names.includes(ns)) names.push(ns);
    const text = names.join();
    if (namespaces.dataset.names !== text) {
      namespaces.dataset.names = text;
      clear(namespaces, h("option", { value: "" }, "All namespaces"), names.map((name) => h("option", { value: name }, name)));
    }
    namespaces.value = ns;
    namespaces.disabled = !app.recording.kind(table.r).namespaced;
  }

  // Widths of the columns by what is in the loaded rows.
  function measure() {
    const names = shownColumns();
    const sample = table.order.slice(0, 200);
    const widths = names.map((name, index) => {
      const longest = sample.reduce((most, one) => Math.max(most, cellText(one, index).length), 0);
      return Math.min(WIDEST_COLUMN, Math.max(name.length + 3, longest + 3));
    });
    const template = widths.map((width, index) => (index === widths.length - 1 ? `minmax(${width}ch, 1fr)` : `${width}ch`)).join(" ");
    scroller.style.setProperty("--columns", `26px ${template}`);
    scroller.style.setProperty("--table-width", `calc(26px + ${widths.reduce((a, b) => a + b, 0)}ch + 24px)`);
  }

  function shownColumns() {
    return [...(table.withNamespace ? ["Namespace"] : []), ...table.columns.map((column) => column.name)];
  }

  function cellText(one, index) {
    const place = table.withNamespace ? index - 1 : index;
    if (place < 0) return one.ns;
    const { name } = table.columns[place];
    if (name === "Name") return one.name;
    if (name === "Age") return one.created ? ago((app.recording.time(app.state.get().moment) ?? 0) - one.created) : "";
    const value = cells.get(one.rev)?.[place];
    return value === undefined || value === null ? "" : String(value);
  }

  function drawHead() {
    const { sort } = app.state.get();
    const names = shownColumns();
    const text = JSON.stringify([names, sort]);
    if (head.dataset.shown === text) return;
    head.dataset.shown = text;
    clear(head, h("span", { role: "columnheader" }, h("span", { class: "sr" }, "State")), names.map((name) => {
      const isSorted = sort.replace(/^-/, "") === name;
      const order = isSorted ? (sort.startsWith("-") ? "descending" : "ascending") : "none";
      return h("span", { role: "columnheader", "aria-sort": order }, h("button", {
        class: "column", on: { click: () => choose({ sort: !isSorted ? name : sort.startsWith("-") ? "" : `-${name}` }) },
      }, name, h("span", { class: "sort-mark", "aria-hidden": "true" }, { none: "", ascending: "↑", descending: "↓" }[order])));
    }));
  }

  function drawRow(index) {
    const one = table.order[index];
    const before = seen.get(one.uid);
    const now = performance.now();
    if (before !== undefined && before !== one.rev) changedUntil.set(one.uid, now + 1500);
    seen.set(one.uid, one.rev);
    const row = cells.get(one.rev);
    if (!row) askForVisible();
    const { tone } = summaryOf(one, table.columns, row);
    const { object } = app.state.get();
    const isSelected = object && object.name === one.name && object.ns === one.ns && object.r === one.r;
    return h("div", {
      role: "row", id: `row-${index}`, "aria-rowindex": index + 2, "aria-selected": String(Boolean(isSelected)), data: { index },
      class: `row${isSelected ? " selected" : ""}${index === table.active ? " active" : ""}${(changedUntil.get(one.uid) ?? 0) > now ? " changed" : ""}${one.deleting ? " deleting" : ""}`,
    }, h("span", { role: "gridcell" }, toneIcon(tone), h("span", { class: "sr" }, TONE_NAMES[tone])), shownColumns().map((name, place) => {
      const text = cellText(one, place);
      return h("span", { role: "gridcell", title: text.length > 20 ? text : null, class: name === "Name" ? "name" : text === "<none>" || text === "<unset>" ? "muted" : null }, text);
    }));
  }

  const askForVisible = inNextFrame(() => {
    loadVisible().then(drawSoon, (error) => app.notify(error.message));
  });

  // ---------------------------------------------------------------- input

  function open(index) {
    const one = table.order[index];
    if (!one) return;
    table.active = index;
    app.state.set({ object: { r: one.r, ns: one.ns, name: one.name } });
  }

  function clicked(event) {
    const row = event.target.closest(".row");
    if (row) open(Number(row.dataset.index));
  }

  function keyed(event) {
    const page = Math.max(1, Math.floor(body.clientHeight / ROW) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Enter") open(table.active);
    else if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return;
    table.active = Math.max(0, Math.min(table.order.length - 1, table.active + step));
    list.reveal(table.active);
    body.setAttribute("aria-activedescendant", `row-${table.active}`);
    if (app.state.get().panel === "object") open(table.active);
  }

  function update(changed) {
    const { filter: text } = app.state.get();
    if (generation !== app.recording.generation) {
      generation = app.recording.generation;
      cells = new CellStore(app.source); // another server may have given the same revisions to other objects
    }
    if (filter.value !== text && document.activeElement !== filter) filter.value = text;
    drawKinds();
    kindSelect.value = currentKind();
    const isOnlySelection = changed.size > 0 && [...changed].every((name) => ["object", "panel", "tab", "request", "query"].includes(name));
    if (isOnlySelection) {
      list.update(table.order.length);
      return;
    }
    if (["kind", "ns", "filter", "sort"].some((name) => changed.has(name))) {
      table.active = -1;
      body.scrollTop = 0;
      if (changed.has("kind")) seen.clear();
    }
    prepare().catch((error) => app.notify(error.message));
  }

  return {
    update,
    destroy() {
      asked += 1;
      drawSoon.cancel();
      askForVisible.cancel();
      list.destroy();
      element.remove();
    },
  };
}

function isWorkload(r) {
  return /^(?:pods|replicationcontrollers)$|\.(?:apps|batch)$/.test(r) && r !== "controllerrevisions.apps";
}

function compareCells(a, b) {
  const [x, y] = [a ?? "", b ?? ""];
  const [m, n] = [Number(x), Number(y)];
  if (x !== "" && y !== "" && !Number.isNaN(m) && !Number.isNaN(n)) return m - n;
  return String(x).localeCompare(String(y), "en", { numeric: true });
}
