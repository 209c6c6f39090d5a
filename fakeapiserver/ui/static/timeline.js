import { h } from "./dom.js";

export function mountTimeline(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Timeline"));
  return { update() {}, destroy: () => element.remove() };
}
