import { h } from "./dom.js";

export function mountObjects(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Objects"));
  return { update() {}, destroy: () => element.remove() };
}
