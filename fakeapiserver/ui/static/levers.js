import { h } from "./dom.js";

export function mountLevers(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Levers"));
  return { update() {}, destroy: () => element.remove() };
}
