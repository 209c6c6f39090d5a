import { h } from "./dom.js";

export function mountChanges(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Changes"));
  return { update() {}, destroy: () => element.remove() };
}
