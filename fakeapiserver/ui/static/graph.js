import { h } from "./dom.js";

export function mountGraph(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Graph"));
  return { update() {}, destroy: () => element.remove() };
}
