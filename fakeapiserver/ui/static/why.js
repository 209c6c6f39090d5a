import { h } from "./dom.js";

export function mountWhy(container) {
  const element = container.appendChild(h("p", { class: "empty" }, "Why"));
  return { update() {}, destroy: () => element.remove() };
}
