import { h } from "./dom.js";

export function mountObject(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Object"));
  return { update() {}, destroy: () => element.remove() };
}
