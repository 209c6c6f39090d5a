import { h } from "./dom.js";

export function mountRequest(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Request"));
  return { update() {}, destroy: () => element.remove() };
}
