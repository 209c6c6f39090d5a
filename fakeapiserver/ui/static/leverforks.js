// The levers of forks: servers of their own in the server's process, from its state of a moment.

import { clear, h } from "./dom.js";
import { leverSection, lookUp } from "./lever.js";

const FORKS = "/fakeapiserver/forks";

export function mountForkLevers(app, board) {
  const list = h("ul", { class: "lever-list" });
  const begin = () => ({ title: "Fork", method: "POST", path: FORKS, python: "other = cluster.fork()",
    done: ({ id, revision, url }) => `Fork ${id} runs at ${url} from revision ${revision}. Open its page below.` });
  const end = (id) => ({ title: `End fork ${id}`, method: "DELETE", path: `${FORKS}/${id}`, python: "other.stop()" });
  // A link logs one browser in, once: each look at a fork needs another one.
  const open = (id) => ({ title: `Open the page of fork ${id}`, method: "POST", path: `${FORKS}/${id}/links`, python: "other.page.link()", done: ({ url }) => {
    window.open(url, "_blank", "noopener");
    return ["If this browser opens no other tab: ", h("a", { href: url, target: "_blank", rel: "noopener" }, `the page of fork ${id}`), "."];
  } });
  return {
    element: leverSection("Forks", h("div", { class: "lever-row" }, board.button("Fork", begin)), list,
      h("p", { class: "muted" }, "A fork is a server of its own with the present state, clock, controllers and nodes, where something can be tried out. " +
        "The credentials of this server are valid there. It ends with this server.")),
    async refresh() {
      const { value, error } = await lookUp(app, FORKS);
      const key = JSON.stringify(value ?? error);
      if (list.dataset.key === key) return; // the buttons stay, and with them the focus
      list.dataset.key = key;
      clear(list, error ? h("li", { class: "muted" }, error) : value.map(({ id, revision, url }) => h("li", {}, h("span", {}, `Fork ${id}, revision ${revision}, `, h("code", {}, url)),
        board.button("Open", () => open(id), { "aria-label": `Open the page of fork ${id}` }), board.button("End", () => end(id), { "aria-label": `End fork ${id}` }))));
    },
  };
}
