// What changed between two moments: the objects that were created, changed and deleted, each with its differences.

import { objectAnchor } from "./causeview.js";
import { changesView } from "./diffview.js";
import { clear, counted, duration, h } from "./dom.js";

const MOST_SHOWN = 200;
// Differences are looked up at once for that many objects; for the others when they are opened.
const OPEN_AT_ONCE = 8;

export function mountChanges(container, app) {
  const { recording, source, state } = app;
  const element = container.appendChild(h("article", { class: "details changes-panel" }));
  let shown = "";

  function update() {
    const { range } = state.get();
    if (!range || shown === range.join()) return;
    shown = range.join();
    draw(range);
  }

  function draw([from, to]) {
    const changes = recording.changesBetween(from, to);
    const numbers = { created: 0, changed: 0, deleted: 0 };
    for (const change of changes) numbers[operationOf(change)] += 1;
    const between = recording.at(to) - recording.at(from);
    clear(element,
      h("header", {},
        h("h1", {}, "Between revisions ", momentAnchor(from), " and ", momentAnchor(to)),
        h("p", { class: "muted" }, `${duration(Math.max(between, 0))} apart. ${counted(changes.length, "object")} differ${changes.length === 1 ? "s" : ""}: `
          + Object.entries(numbers).map(([word, number]) => `${number} ${word}`).join(", "))),
      h("ul", { class: "changed-objects" }, changes.slice(0, MOST_SHOWN).map((change, index) => objectView(change, index < OPEN_AT_ONCE))),
      changes.length > MOST_SHOWN ? h("p", { class: "muted" }, `and ${counted(changes.length - MOST_SHOWN, "object")} more: choose moments that are closer`) : null);
  }

  function momentAnchor(revision) {
    return h("a", { href: state.link({ moment: revision }) }, revision);
  }

  function objectView(change, isOpen) {
    const operation = operationOf(change);
    const { r, ns, name } = change.head;
    const title = `${recording.kind(r).kind} ${ns ? `${ns}/` : ""}${name}`;
    const body = h("div", { class: "change-body" });
    let isLoaded = false;
    const details = h("details", { on: { toggle: load } },
      h("summary", {}, h("span", { class: `badge ${{ created: "ok", deleted: "danger", changed: "accent" }[operation]}` }, operation), " ",
        title), body);

    async function load() {
      if (isLoaded || !details.open) return;
      isLoaded = true;
      const revisions = [change.before?.rev, change.after?.rev].filter((revision) => revision !== undefined);
      try {
        const states = await source.states(revisions);
        const [before, after] = [change.before, change.after].map((head) => (head ? states.get(head.rev)?.object ?? null : null));
        const isMissing = (change.before && !before) || (change.after && !after);
        clear(body, isMissing ? h("p", { class: "muted" }, "One of the two states is forgotten.")
          : operation === "changed" ? changesView(before, after, 30) : h("p", { class: "muted" }, `${operation} between the two moments`));
      } catch (error) {
        clear(body, h("p", { class: "danger-text" }, error.message));
      }
    }

    details.open = isOpen && operation === "changed";
    return h("li", {}, details, objectAnchor(app, change.head, "Open", { class: "open", "aria-label": `Open ${title}` }));
  }

  update();
  return { update, destroy: () => element.remove() };
}

function operationOf({ before, after }) {
  return before ? (after ? "changed" : "deleted") : "created";
}
