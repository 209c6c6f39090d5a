// The keyboard on the time line: arrows move between the marks of a lane and between lanes.

import { on } from "./dom.js";
import { setMoment } from "./header.js";
import { sentenceOf } from "./joins.js";
import { AXIS_HEIGHT, ROW_HEIGHT } from "./timelinedraw.js";

const ZOOM = 0.7;
const PAN = 120; // pixels

// Returns the function that ends it.
export function listenToKeys(timeline) {
  const { canvas, scale, scroller, app } = timeline;
  let rowIndex = -1; // that of the focused mark

  function markable() {
    return timeline.rows.filter((row) => row.lane.starts.length && !(row.isHeader && row.isOpen));
  }

  function currentRow() {
    const rows = markable();
    const lane = timeline.focus && timeline.lanes.laneOf(timeline.focus);
    const index = rows.findIndex((row) => row.lane === lane);
    rowIndex = index >= 0 ? index : Math.min(Math.max(rowIndex, 0), rows.length - 1);
    return { rows, row: rows[rowIndex], isOnMark: index >= 0 };
  }

  function focusMark(row, index) {
    const { lane } = row;
    timeline.focus = lane.records[index];
    scale.reveal(lane.starts[index]);
    const top = row.y;
    const visible = scroller.clientHeight - AXIS_HEIGHT;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + ROW_HEIGHT > scroller.scrollTop + visible) scroller.scrollTop = top + ROW_HEIGHT - visible;
    const sentence = sentenceOf(app.recording, timeline.focus);
    timeline.say(`${row.isHeader ? row.group.title : lane.title}, ${index + 1} of ${lane.starts.length}: ${sentence}`);
    if (!timeline.selected) timeline.status.textContent = sentence;
    timeline.draw();
  }

  function along(step) {
    const { row, isOnMark } = currentRow();
    if (!row) return;
    const { lane } = row;
    const last = lane.starts.length - 1;
    if (step === "first" || step === "last") focusMark(row, step === "first" ? 0 : last);
    else if (!isOnMark) focusMark(row, Math.min(Math.max(lane.first(scale.from), 0), last));
    else {
      const index = lane.indexOf(timeline.focus, timeline.lanes.x(timeline.focus));
      focusMark(row, Math.min(Math.max(index + step, 0), last));
    }
  }

  function across(step) {
    const { rows, row, isOnMark } = currentRow();
    if (!row) return;
    const target = isOnMark ? rows[Math.min(Math.max(rowIndex + step, 0), rows.length - 1)] : row;
    const start = isOnMark ? timeline.lanes.x(timeline.focus) : scale.from;
    const after = Math.min(target.lane.first(start), target.lane.starts.length - 1);
    const before = Math.max(after - 1, 0);
    const nearest = Math.abs(target.lane.starts[before] - start) < Math.abs(target.lane.starts[after] - start) ? before : after;
    focusMark(target, nearest);
  }

  function pan(pixels) {
    if (scale.mode === "fit") scale.mode = "free";
    scale.pan(pixels);
    timeline.draw();
  }

  function zoom(factor) {
    if (scale.mode === "fit") scale.mode = "tail";
    const focus = timeline.focus && timeline.place(timeline.focus);
    scale.zoom(factor, focus ? scale.x(focus.start) : undefined);
    timeline.draw();
  }

  function momentOfFocus() {
    return timeline.focus ? timeline.momentAt(timeline.lanes.x(timeline.focus)) : app.state.get().moment ?? app.recording.revision;
  }

  function compare() {
    if (timeline.rangeStart === null) {
      timeline.say("Press [ at the first moment before you press ] at the second.");
      return;
    }
    app.state.set({ range: [timeline.rangeStart, momentOfFocus()].sort((a, b) => a - b) });
    timeline.rangeStart = null;
  }

  const actions = {
    ArrowLeft: () => along(-1),
    ArrowRight: () => along(1),
    ArrowUp: () => across(-1),
    ArrowDown: () => across(1),
    Home: () => along("first"),
    End: () => along("last"),
    Enter: () => timeline.focus && timeline.select(timeline.focus),
    "+": () => zoom(ZOOM),
    "=": () => zoom(ZOOM),
    "-": () => zoom(1 / ZOOM),
    0: () => {
      scale.fit();
      timeline.draw();
    },
    z: () => timeline.zoomToJoins(),
    m: () => setMoment(app, momentOfFocus()),
    "[": () => {
      timeline.rangeStart = momentOfFocus();
      timeline.say(`Comparing from revision ${timeline.rangeStart}. Press ] at the second moment.`);
      app.notify(`Comparing from revision ${timeline.rangeStart}: press ] at the second moment.`);
    },
    "]": compare,
    Escape: () => timeline.select(null),
  };

  function keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) pan(event.key === "ArrowLeft" ? -PAN : PAN);
    else if (Object.hasOwn(actions, event.key)) actions[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const endings = [on(canvas, "keydown", keyed), on(canvas, "focus", timeline.draw), on(canvas, "blur", timeline.draw)];
  return () => endings.forEach((end) => end());
}
