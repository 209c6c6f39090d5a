// What all levers share: buttons that show the lines that do the same, act, and show what came of it.

import { clear, h } from "./dom.js";
import { copyLine, shellWord } from "./repeat.js";

const RAW = { POST: "create", PUT: "replace", DELETE: "delete", GET: "get" };

// The line of kubectl for levers that the command `fakeapiserver` has no words for.
export function rawLine(method, path, body) {
  const input = method === "POST" || method === "PUT" ? ` -f - <<< ${shellWord(JSON.stringify(body ?? {}))}` : "";
  return `kubectl ${RAW[method]} --raw ${shellWord(path)}${input}`;
}

// A lever is {title, method, path, body, shell, python, done}: `shell` is a raw line by default; `done(answer)` makes a
// sentence, or its parts.
export class LeverBoard {
  constructor(app, refresh) {
    this.app = app;
    this.refresh = refresh;
    this.lines = h("div", { class: "lever-lines" });
    this.outcome = h("p", { class: "lever-outcome", role: "status" });
    this.element = h("section", { class: "lever-board", "aria-label": "The same by hand" }, this.outcome, this.lines);
    this.show(null);
  }

  // Shows the lines of a lever.
  show(lever) {
    clear(this.lines, lever ? [
      copyLine("shell", lever.shell ?? rawLine(lever.method, lever.path, lever.body), this.app),
      lever.python ? copyLine("Python", lever.python, this.app) : null,
    ] : h("p", { class: "muted" }, "Point at a lever: the lines that do the same in a shell and in Python are shown here."));
  }

  async act(lever) {
    this.show(lever);
    this.outcome.classList.remove("danger-text");
    this.outcome.textContent = `${lever.title}…`;
    try {
      const answer = await this.app.source.call(lever.method, lever.path, lever.body);
      clear(this.outcome, lever.done?.(answer) ?? `${lever.title}: done.`);
      return true;
    } catch (error) {
      this.outcome.classList.add("danger-text");
      this.outcome.textContent = `${lever.title}: ${error.message}`;
      return false;
    } finally {
      this.refresh();
    }
  }

  // A button; `make()` returns its lever when it is pointed at and used, or null while something is missing.
  button(name, make, properties = {}) {
    const preview = () => {
      const lever = make();
      if (lever) this.show(lever);
    };
    // A button that acts isn't disabled meanwhile: it would lose the keyboard's focus.
    let isActing = false;
    return h("button", { type: "button", class: "button small", ...properties, on: {
      pointerenter: preview,
      focus: preview,
      click: async () => {
        const lever = isActing ? null : make();
        if (!lever) return;
        isActing = true;
        await this.act(lever);
        isActing = false;
      },
    } }, name);
  }
}

// A section of levers with its heading.
export function leverSection(title, ...children) {
  return h("section", { class: "lever-section" }, h("h2", {}, title), children);
}

// Looks something up; returns {value} or {error}: the sentence of the server's refusal.
export async function lookUp(app, path) {
  try {
    return { value: await app.source.call("GET", path) };
  } catch (error) {
    return { error: error.message };
  }
}
