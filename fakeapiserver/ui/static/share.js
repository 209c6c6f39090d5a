import { h } from "./dom.js";

export function mountShare(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Share"));
  return { update() {}, destroy: () => element.remove() };
}
