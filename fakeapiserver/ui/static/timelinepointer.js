// The pointer on the time line: hover, click, drag to move, shift and drag to compare, the axis to scrub, the wheel to zoom.

import { clear, clockTime, duration, h, on } from "./dom.js";
import { sentenceOf } from "./joins.js";
import { AXIS_HEIGHT } from "./timelinedraw.js";

const LEAST_DRAG = 4; // pixels

// Returns the function that ends it.
export function listenToPointer(timeline) {
  const { canvas, scroller, scale, app } = timeline;
  let drag = null; // {kind, x, y, moved}

  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  function pressed(event) {
    if (event.button !== 0) return;
    const { x, y } = placeOf(event);
    const kind = event.shiftKey ? "range" : y < AXIS_HEIGHT ? "scrub" : "pan";
    drag = { kind, x, y, startX: x, moved: false };
    canvas.setPointerCapture(event.pointerId);
    if (kind === "scrub") timeline.scrub(x);
    if (kind === "range") timeline.draft = [scale.value(x), scale.value(x)];
    hideTip();
  }

  function moved(event) {
    const { x, y } = placeOf(event);
    if (!drag) {
      hovered(x, y);
      return;
    }
    drag.moved ||= Math.abs(x - drag.startX) > LEAST_DRAG || Math.abs(y - drag.y) > LEAST_DRAG;
    if (drag.kind === "scrub") timeline.scrub(x);
    else if (drag.kind === "range") timeline.draft[1] = scale.value(x);
    else if (drag.moved) {
      if (scale.mode === "fit") scale.mode = "free";
      scale.pan(drag.x - x);
      scroller.scrollTop += drag.y - y;
      [drag.x, drag.y] = [x, y];
      canvas.classList.add("moving");
    }
    timeline.draw();
  }

  function released(event) {
    if (!drag) return;
    const { kind, moved: hasMoved } = drag;
    const { x, y } = placeOf(event);
    drag = null;
    canvas.classList.remove("moving");
    if (kind === "range") {
      const range = timeline.draft.map((value) => timeline.momentAt(value)).sort((a, b) => a - b);
      timeline.draft = null;
      if (hasMoved) app.state.set({ range });
    } else if (kind === "pan" && !hasMoved) timeline.select(timeline.markAt(x, y));
    timeline.draw();
  }

  function hovered(x, y) {
    const record = timeline.markAt(x, y);
    canvas.style.cursor = record ? "pointer" : y < AXIS_HEIGHT ? "ew-resize" : "";
    if (record !== timeline.hover) {
      timeline.hover = record;
      timeline.draw();
    }
    if (record) showTip(record, x, y);
    else hideTip();
  }

  function showTip(record, x, y) {
    const { tip, element } = timeline;
    const start = timeline.lanes.x(record);
    const time = timeline.isClusterAxis ? clockTime(start) : duration(start);
    clear(tip, h("p", {}, sentenceOf(app.recording, record)),
      h("p", { class: "muted" }, record.ms === undefined ? `at ${time}` : `at ${time}, took ${duration(record.ms / 1000)}`));
    tip.hidden = false;
    const box = canvas.getBoundingClientRect();
    const frame = element.getBoundingClientRect();
    const left = Math.min(box.left - frame.left + x + 12, frame.width - tip.offsetWidth - 8);
    const below = box.top - frame.top + y + 18;
    tip.style.left = `${Math.max(left, 8)}px`;
    tip.style.top = `${below + tip.offsetHeight > frame.height ? below - tip.offsetHeight - 32 : below}px`;
  }

  function hideTip() {
    timeline.tip.hidden = true;
  }

  function left() {
    timeline.hover = null;
    hideTip();
    timeline.draw();
  }

  function wheeled(event) {
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      if (scale.mode === "fit") scale.mode = "free";
      scale.pan(sideways);
    } else {
      if (scale.mode === "fit") scale.mode = "tail";
      scale.zoom(1.0022 ** Math.max(-300, Math.min(event.deltaY * (event.deltaMode ? 30 : 1), 300)), placeOf(event).x);
    }
    hideTip();
    timeline.draw();
  }

  const endings = [
    on(canvas, "pointerdown", pressed), on(canvas, "pointermove", moved), on(canvas, "pointerup", released), on(canvas, "pointerleave", left),
    on(canvas, "pointercancel", () => {
      drag = null;
      timeline.draft = null;
    }),
    on(canvas, "wheel", wheeled, { passive: false }),
    on(canvas, "dblclick", (event) => {
      scale.zoom(0.4, placeOf(event).x);
      timeline.draw();
    }),
  ];
  return () => endings.forEach((end) => end());
}
