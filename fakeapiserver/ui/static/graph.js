// The view "Graph": who owns and who refers to whom in a namespace, drawn, or as a list; and who may do what.

import { clear, counted, h, inNextFrame, svg } from "./dom.js";
import { graphOf } from "./graphmodel.js";
import { layout, NODE } from "./graphlayout.js";
import { graphList } from "./graphlist.js";
import { TONE_NAMES, toneIcon } from "./summary.js";
import { whoCanView } from "./whocan.js";

const GRAPH_MODES = [["picture", "Picture"], ["list", "List"], ["who", "Who can"]];
const EDGE_WORDS = { owns: "owns", selects: "selects", uses: "uses", targets: "leads to", binds: "binds" };
const MARK = { ok: "circle", wait: "triangle", bad: "diamond", going: "cross", plain: "circle" };

export function mountGraph(container, app) {
  const namespaces = h("select", { "aria-label": "Namespace", on: { change: (event) => app.state.set({ ns: event.target.value }) } });
  const search = h("input", { type: "search", "data-filter": true, placeholder: "Find an object", "aria-label": "Find an object in the graph", on: { input: () => emphasise(null) } });
  const count = h("span", { class: "muted", role: "status" });
  const modes = h("div", { class: "segments", role: "group", "aria-label": "Form of the graph" }, GRAPH_MODES.map(([name, label]) =>
    h("button", { class: "button", "aria-pressed": "false", on: { click: () => setMode(name) } }, label)));
  const content = h("div", { class: "graph-content graph" });
  const element = container.appendChild(h("div", { class: "graph" }, h("h1", { class: "sr" }, "Graph"), h("div", { class: "toolbar" }, namespaces, modes, search, count), content));
  const open = new Set();
  const picture = pictureOf();
  let mode = matchMedia("(max-width: 700px)").matches ? "list" : "picture";
  let graph = null;
  let shape = "";
  let turn = 0;
  let asked = "";
  let who = null;
  setMode(mode);

  function setMode(name) {
    mode = name;
    for (const [index, button] of [...modes.children].entries()) button.setAttribute("aria-pressed", String(GRAPH_MODES[index][0] === name));
    shape = "";
    asked = "";
    who = null;
    clear(content);
    search.hidden = name === "who";
    update(new Set(["records"]));
  }

  // The namespace of the state; else the first with workloads that isn't the system's.
  function currentNamespace() {
    const { ns, moment } = app.state.get();
    if (ns) return ns;
    const busy = new Map();
    for (const r of ["pods", "deployments.apps", "services", "configmaps"]) for (const head of app.recording.ofKind(r, moment)) busy.set(head.ns, (busy.get(head.ns) ?? 0) + 1);
    const names = app.recording.ofKind("namespaces", moment).map((one) => one.name).filter((name) => !name.startsWith("kube-"));
    return names.sort((a, b) => (busy.get(b) ?? 0) - (busy.get(a) ?? 0))[0] ?? "default";
  }

  function update(changed) {
    drawNamespaces();
    const { moment, object } = app.state.get();
    const key = JSON.stringify([currentNamespace(), moment, moment === null ? app.recording.size : 0, [...open]]);
    if (mode === "who") {
      who ??= whoCanView(content, app);
      who.update(changed);
      count.textContent = "";
      return;
    }
    if (key === asked) {
      if (mode === "picture" && graph) picture.select(object);
      return;
    }
    asked = key;
    const mine = turn += 1;
    graphOf(app, currentNamespace(), moment, open).then((next) => {
      if (mine === turn) show(next);
    }, (error) => app.notify(error.message));
  }

  function drawNamespaces() {
    const names = app.recording.ofKind("namespaces", app.state.get().moment).map((one) => one.name).sort();
    if (namespaces.dataset.names !== names.join()) {
      namespaces.dataset.names = names.join();
      clear(namespaces, names.map((name) => h("option", { value: name }, name)));
    }
    namespaces.value = currentNamespace();
  }

  function show(next) {
    graph = next;
    count.textContent = [counted(next.total, "object"), next.nodes.some((node) => node.members) ? "similar ones folded" : "",
      next.edges.some((edge) => edge.isHidden) ? "lines to those that many use appear when you point at them" : ""].filter(Boolean).join(", ");
    const text = JSON.stringify([next.nodes.map(({ key, tone, text: state }) => [key, tone, state]), next.edges]);
    if (text === shape) return;
    shape = text;
    if (!next.nodes.length) {
      clear(content, h("div", { class: "empty" }, h("h2", {}, `Nothing to draw in ${currentNamespace()}`), h("p", {}, "Choose another namespace or moment.")));
      picture.forget();
      return;
    }
    if (mode === "list") clear(content, graphList(next, app, EDGE_WORDS, (key) => toggle(key)));
    else picture.draw(next);
  }

  function toggle(key) {
    if (!open.delete(key)) open.add(key);
    update(new Set(["open"]));
  }

  function emphasise(near) {
    picture.emphasise(near, search.value.trim().toLowerCase());
  }

  // ---------------------------------------------------------------- picture

  function pictureOf() {
    const edgesLayer = svg("g", {});
    const nodesLayer = svg("g", {});
    const scene = svg("g", {}, edgesLayer, nodesLayer);
    const canvas = svg("svg", { class: "graph-picture", role: "group", "aria-label": "Graph of the namespace; arrows go from object to object" },
      svg("defs", {}, svg("marker", { id: "graph-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
        svg("path", { d: "M0 .8 7 4 0 7.2z", class: "graph-arrow" }))), scene);
    const tools = h("div", { class: "graph-tools" },
      h("button", { class: "icon", "aria-label": "Smaller", title: "Smaller (−)", on: { click: () => zoom(1 / 1.25) } }, "−"),
      h("button", { class: "icon", "aria-label": "Larger", title: "Larger (+)", on: { click: () => zoom(1.25) } }, "+"),
      h("button", { class: "icon", "aria-label": "Fit", title: "Fit the window (0)", on: { click: () => fit() } }, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" }))));
    const legend = h("div", { class: "graph-legend", "aria-hidden": "true" }, [["ok", "ready"], ["wait", "not ready"], ["bad", "failing or missing"], ["going", "being deleted"]].map(([tone, label]) => h("span", {}, toneIcon(tone), label)),
      h("span", {}, lineSample(""), "owns"), h("span", {}, lineSample("uses"), "refers to"));
    const frame = h("div", { class: "graph-canvas" }, canvas, legend, tools);
    const view = { x: 0, y: 0, scale: 1, isFitted: false };
    let elements = new Map(); // key -> element
    let current = null; // the graph that is drawn
    let namespace = "";
    const placeSoon = inNextFrame(() => scene.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`));
    canvas.addEventListener("wheel", wheeled, { passive: false });
    canvas.addEventListener("pointerdown", dragged);
    canvas.addEventListener("keydown", keyed);

    function draw(next) {
      if (!frame.isConnected) clear(content, frame);
      layout(next.nodes, next.edges.filter((edge) => !edge.isHidden));
      current = next;
      const byKey = new Map(next.nodes.map((node) => [node.key, node]));
      const focused = document.activeElement?.dataset?.key;
      edgesLayer.replaceChildren(...next.edges.filter((edge) => byKey.has(edge.from) && byKey.has(edge.to)).map((edge) => edgeView(edge, byKey)));
      elements = new Map(next.nodes.map((node) => [node.key, nodeView(node)]));
      nodesLayer.replaceChildren(...elements.values());
      const first = elements.get(focused) ?? elements.values().next().value;
      first?.setAttribute("tabindex", "0");
      if (focused) elements.get(focused)?.focus();
      if (!view.isFitted || namespace !== currentNamespace()) fit();
      namespace = currentNamespace();
      select(app.state.get().object);
      emphasiseNear(null, search.value.trim().toLowerCase());
    }

    // The name for screen readers begins with what is to be seen, as those who speak to their browser say it.
    function nodeView(node) {
      const [kind, name] = [fitted(`${kindName(node)}${node.text ? ` · ${node.text}` : ""}`, 28), fitted(node.name, 24)];
      const more = [name === node.name ? "" : node.name, node.text ? "" : TONE_NAMES[node.tone]].filter(Boolean);
      const label = [`${kind} ${name}`, ...more].join(", ");
      return svg("g", {
        class: `graph-node ${node.tone}${node.exists ? "" : " missing"}${node.members ? " group" : ""}`, transform: `translate(${node.x} ${node.y})`, role: "link", tabindex: "-1",
        "aria-label": label, data: { key: node.key }, on: { click: () => activate(node), mouseenter: () => emphasiseNear(node.key), mouseleave: () => emphasiseNear(null), focus: () => emphasiseNear(node.key), blur: () => emphasiseNear(null) },
      }, svg("title", {}, `${kindName(node)} ${node.name}`), svg("rect", { class: "box", width: NODE.width, height: NODE.height, rx: 6 }), markView(node.tone),
      svg("text", { class: "graph-kind", x: 30, y: 15 }, kind), " ", svg("text", { x: 30, y: 30 }, name));
    }

    function edgeView({ from, to, kind, label, isHidden, via = [] }, byKey) {
      const [a, b] = [byKey.get(from), byKey.get(to)];
      return svg("path", { class: `graph-edge ${kind === "owns" ? "" : "uses"}${b.exists ? "" : " missing"}${isHidden ? " hidden" : ""}`, d: edgePath(a, via, b), "marker-end": "url(#graph-arrow)", data: { from, to } },
        svg("title", {}, `${a.name} ${EDGE_WORDS[kind]} ${b.name}${label ? ` (${label})` : ""}`));
    }

    function activate(node) {
      if (node.members) toggle(node.key);
      else if (node.head) app.state.set({ object: { r: node.r, ns: node.ns, name: node.name } });
      else app.notify(`${kindName(node)} ${node.name} does not exist at this moment.`);
    }

    function fit() {
      if (!current?.nodes.length) return;
      const { width, height } = frame.getBoundingClientRect();
      const right = Math.max(...current.nodes.map((node) => node.x)) + NODE.width;
      const bottom = Math.max(...current.nodes.map((node) => node.y)) + NODE.height;
      // What would be too small to read is not fitted as a whole.
      const scale = Math.min(1.1, Math.max(0.45, Math.min((width - 60) / right, (height - 110) / bottom)));
      Object.assign(view, { scale, x: Math.max(30, (width - right * scale) / 2), y: Math.max(24, (height - 50 - bottom * scale) / 2), isFitted: width > 0 });
      placeSoon();
    }

    function zoom(factor, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
      const scale = Math.min(3, Math.max(0.05, view.scale * factor));
      const change = scale / view.scale;
      Object.assign(view, { scale, x: x - (x - view.x) * change, y: y - (y - view.y) * change });
      placeSoon();
    }

    function wheeled(event) {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 200), event.clientX - box.left, event.clientY - box.top);
      else {
        view.x -= event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
        view.y -= event.shiftKey && !event.deltaX ? 0 : event.deltaY;
        placeSoon();
      }
    }

    function dragged(event) {
      if (event.button !== 0 || event.target.closest(".graph-node")) return;
      const [startX, startY] = [event.clientX - view.x, event.clientY - view.y];
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("moving");
      canvas.onpointermove = (move) => {
        Object.assign(view, { x: move.clientX - startX, y: move.clientY - startY });
        placeSoon();
      };
      canvas.onpointerup = () => {
        canvas.onpointermove = null;
        canvas.classList.remove("moving");
      };
    }

    function keyed(event) {
      const node = current?.nodes.find((one) => one.key === event.target.dataset?.key);
      const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      if (event.key === "+" || event.key === "=") zoom(1.25);
      else if (event.key === "-") zoom(1 / 1.25);
      else if (event.key === "0") fit();
      else if ((event.key === "Enter" || event.key === " ") && node) activate(node);
      else if (direction && node) focusNode(nearest(node, direction));
      else return;
      event.preventDefault();
      event.stopPropagation();
    }

    // The nearest node in a direction; what lies aside counts double.
    function nearest(node, [dx, dy]) {
      let best = null;
      for (const other of current.nodes) {
        const [x, y] = [other.x - node.x, other.y - node.y];
        const along = x * dx + y * dy;
        if (along <= 1) continue;
        const distance = along + 2 * Math.abs(x * dy - y * dx);
        if (!best || distance < best.distance) best = { other, distance };
      }
      return best?.other ?? node;
    }

    function focusNode(node) {
      for (const one of elements.values()) one.setAttribute("tabindex", "-1");
      const one = elements.get(node.key);
      one.setAttribute("tabindex", "0");
      one.focus({ preventScroll: true });
      const { width, height } = frame.getBoundingClientRect();
      const [x, y] = [node.x * view.scale + view.x, node.y * view.scale + view.y];
      if (x < 20 || x > width - NODE.width * view.scale - 20) view.x += width / 2 - x - (NODE.width * view.scale) / 2;
      if (y < 20 || y > height - 80) view.y += height / 2 - y;
      placeSoon();
    }

    function select(object) {
      for (const [key, one] of elements) one.classList.toggle("selected", object !== null && key === `${object.r}/${object.ns ?? ""}/${object.name}`);
    }

    // Fades what isn't near a node, or whose name doesn't contain the text.
    function emphasiseNear(key, wanted = "") {
      scene.classList.toggle("graph-faded", key !== null || wanted !== "");
      const near = new Set(key ? [key] : []);
      for (const edge of edgesLayer.children) {
        const isNear = key !== null && (edge.dataset.from === key || edge.dataset.to === key);
        edge.classList.toggle("near", isNear);
        if (isNear) near.add(edge.dataset.from).add(edge.dataset.to);
      }
      for (const [one, node] of elements) node.classList.toggle("near", near.has(one) || (wanted !== "" && one.toLowerCase().includes(wanted)));
    }

    return { draw, select, emphasise: emphasiseNear, forget: () => { view.isFitted = false; }, destroy: () => placeSoon.cancel() };
  }

  function kindName(node) {
    return app.recording.kind(node.r).kind;
  }

  return {
    update,
    destroy() {
      turn += 1;
      picture.destroy();
      element.remove();
    },
  };
}

// A line from node to node, which bends between the columns and is straight where it passes one.
function edgePath(from, via, to) {
  let [x, y] = [from.x + NODE.width, from.y + NODE.height / 2];
  let path = `M${x} ${y}`;
  for (const stop of [...via, { x: to.x, y: to.y + NODE.height / 2, isLast: true }]) {
    const bend = stop.x > x ? Math.min(60, (stop.x - x) / 2) : 80;
    path += `C${x + bend} ${y} ${stop.x - bend} ${stop.y} ${stop.x} ${stop.y}`;
    if (!stop.isLast) path += `H${stop.x + NODE.width}`;
    [x, y] = [stop.x + NODE.width, stop.y];
  }
  return path;
}

function fitted(name, most) {
  return name.length > most ? `${name.slice(0, Math.ceil(most * 0.6) - 1)}…${name.slice(-Math.floor(most * 0.4))}` : name;
}

function markView(tone) {
  const shapes = { circle: "M15 14.5a5.5 5.5 0 1 0 .01 0z", triangle: "M15 14 21 25.4H9z", diamond: "M15 13.5 21.5 20 15 26.5 8.5 20z", cross: "M10.5 15.5l9 9M19.5 15.5l-9 9" };
  return svg("path", { class: "mark", d: shapes[MARK[tone]] });
}

function lineSample(kind) {
  return svg("svg", { width: 22, height: 8, "aria-hidden": "true" }, svg("path", { class: `graph-edge ${kind}`, d: "M0 4h22" }));
}
