// Share: the link to what is shown, the page as one file, and the lines that repeat it.

import { clear, h } from "./dom.js";
import { copyLine, faultLines, requestLines } from "./repeat.js";

const NEEDS = "The link opens for whoever is logged in to this server, while it runs and remembers the moment.";

export function mountShare(container, app) {
  const { source, recording, state } = app;
  const element = container.appendChild(h("section", { class: "details share", "aria-label": "Share" }));
  let shown = "";

  function update() {
    const { moment, request } = state.get();
    const key = `${location.hash} ${moment} ${request} ${recording.faults.length}`;
    if (key === shown) return;
    shown = key;
    clear(element, linkPart(), filePart(), repeatPart(recording.request(request)));
  }

  // The link of what the other views show: the time line rather than this view.
  function linkPart() {
    const { moment } = state.get();
    const view = state.link({ view: "timeline", moment: moment ?? recording.revision });
    const url = `${location.origin === "null" ? location.pathname : location.origin + location.pathname}${view}`;
    return [
      h("h1", {}, "Share"),
      h("h2", {}, moment === null ? `A link to this moment, revision ${recording.revision}` : `A link to revision ${moment} and the selection`),
      copyLine("link", url, app),
      source.canAct ? h("p", { class: "muted" }, NEEDS) : h("p", { class: "muted" }, "The link works where this file is at the same place; add what is after # to its address elsewhere."),
    ];
  }

  function filePart() {
    if (!source.canAct) return [h("h2", {}, "The page as a file"), h("p", { class: "muted" }, "This page is such a file already: pass it on as it is.")];
    const note = h("p", { class: "muted" }, "One HTML file with the recording inside. It opens without a server and without a network. Values of Secrets are not in it.");
    const button = h("button", { class: "button primary", on: { click: save } }, "Download the page");
    async function save() {
      button.disabled = true;
      try {
        const page = await source.call("GET", "/fakeapiserver/timeline/page");
        const url = URL.createObjectURL(new Blob([page], { type: "text/html" }));
        h("a", { href: url, download: `fakeapiserver-${recording.revision}.html` }).click();
        setTimeout(() => URL.revokeObjectURL(url), 60_000);
      } catch (error) {
        app.notify(error.message);
      }
      button.disabled = false;
    }
    return [h("h2", {}, "The page as a file"), note, h("p", {}, button)];
  }

  function repeatPart(request) {
    const parts = [h("h2", {}, "Repeat it")];
    const { seed } = recording.start;
    if (seed !== undefined && seed !== null) {
      parts.push(h("p", { class: "muted" }, "The seed of names, uids and pauses:"), copyLine("shell", `fakeapiserver serve --seed=${seed}`, app), copyLine("Python", `Cluster(seed=${seed})`, app));
    }
    const faults = recording.faults.filter((fault) => !fault.removed);
    for (const { fault } of faults) parts.push(faultLines(fault).map(([name, line]) => copyLine(name, line, app)));
    if (request) {
      parts.push(h("p", { class: "muted" }, `The selected request ${request.seq}:`));
      const lines = h("div");
      parts.push(lines);
      source.request(request.seq).catch(() => null).then((details) => {
        clear(lines, requestLines(request, recording.kind(request.r), details?.body ?? null).map(([name, line]) => copyLine(name, line, app)));
      });
    } else parts.push(h("p", { class: "muted" }, "Select a request on the time line: its lines for kubectl, curl and Python are shown here."));
    return parts;
  }

  update();
  return { update, destroy: () => element.remove() };
}
