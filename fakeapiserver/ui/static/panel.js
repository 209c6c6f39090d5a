// The panel beside the view: the details of what is selected. Its width can be changed by dragging or with the arrows.

import { clear, h, svg } from "./dom.js";

const WIDTH_KEY = "fakeapiserver.panel";
const [NARROWEST, WIDEST] = [25, 75]; // per cent of the window

export function closeIcon() {
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M4 4l8 8M12 4l-8 8" }));
}

// `details`: the name of a panel -> its mount function.
export function mountPanel(parent, app, details) {
  const handle = h("div", {
    class: "handle", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": "Width of the details",
    "aria-valuemin": NARROWEST, "aria-valuemax": WIDEST, on: { keydown: keyed, pointerdown: dragged },
  });
  const content = h("div", { class: "content", tabindex: "-1" });
  const close = h("button", {
    class: "icon close", "aria-label": "Close the details", title: "Close (Esc)", on: { click: () => app.state.set({ panel: "" }) },
  }, closeIcon());
  const aside = parent.appendChild(h("aside", { class: "panel", "aria-label": "Details", hidden: true }, handle, close, content));
  let mounted = null; // {name, view}
  let width = Number(stored()) || 44;
  resize(width);

  function resize(percent) {
    width = Math.min(WIDEST, Math.max(NARROWEST, percent));
    aside.style.setProperty("--panel-width", `${width}%`);
    handle.setAttribute("aria-valuenow", Math.round(width));
    store(String(Math.round(width)));
  }

  function keyed(event) {
    const step = { ArrowLeft: 2, ArrowRight: -2 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    resize(width + step);
  }

  function dragged(event) {
    event.preventDefault();
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (move) => resize(100 * (1 - move.clientX / innerWidth));
    handle.onpointerup = () => {
      handle.onpointermove = null;
    };
  }

  return {
    update(changed) {
      const { panel, object, request, range } = app.state.get();
      const selected = { object, request, changes: range };
      const name = app.recording.start && Object.hasOwn(selected, panel) && selected[panel] ? panel : "";
      if (name === (mounted?.name ?? "")) {
        mounted?.view.update(changed);
        return;
      }
      mounted?.view.destroy();
      clear(content);
      aside.hidden = name === "";
      mounted = name ? { name, view: details[name](content, app) } : null;
    },
  };
}

// Pages from files may have no storage.
function stored() {
  try {
    return localStorage.getItem(WIDTH_KEY);
  } catch {
    return null;
  }
}

function store(value) {
  try {
    localStorage.setItem(WIDTH_KEY, value);
  } catch {
    // the width is only kept while the page is open
  }
}
