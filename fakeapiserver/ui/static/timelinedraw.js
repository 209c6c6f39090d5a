// Draws the time line on its canvas: only what is visible, and per pixel where marks are dense.

import { shortText } from "./joins.js";
import { LOOK } from "./lanes.js";

export const AXIS_HEIGHT = 26;
export const ROW_HEIGHT = 24;
// With more marks than one in that many pixels, a lane is drawn as bars per pixel.
const DENSE_PIXELS = 3;

const MARK_COLOURS = {
  bg: "--bg", bg2: "--bg-2", bg3: "--bg-3", line: "--line", text: "--text", text2: "--text-2", accent: "--accent", accentText: "--accent-text",
  read: "--mark-read", write: "--mark-write", watch: "--mark-watch", reconcile: "--mark-reconcile", fault: "--mark-fault",
  refused: "--mark-refused", deleted: "--mark-delete",
};

const LOOK_COLOURS = {
  [LOOK.READ]: "read", [LOOK.WRITE]: "write", [LOOK.REFUSED]: "refused", [LOOK.DRY]: "write", [LOOK.WATCH]: "watch", [LOOK.CREATE]: "write",
  [LOOK.UPDATE]: "write", [LOOK.DELETE]: "deleted", [LOOK.DELIVERY]: "watch", [LOOK.RECONCILE]: "reconcile", [LOOK.FAILED]: "refused",
  [LOOK.FAULT]: "fault", [LOOK.CLOCK]: "text2",
};
// Refused ones last, so that nothing hides them.
const ORDER = [LOOK.READ, LOOK.DELIVERY, LOOK.RECONCILE, LOOK.WATCH, LOOK.WRITE, LOOK.DRY, LOOK.UPDATE, LOOK.CREATE, LOOK.DELETE, LOOK.CLOCK,
  LOOK.FAULT, LOOK.FAILED, LOOK.REFUSED];

export function paletteOf(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(Object.entries(MARK_COLOURS).map(([name, variable]) => [name, style.getPropertyValue(variable).trim()]));
}

// Draws one mark of a look whose bar is `width` wide, with the middle of its row at y.
export function drawMark(context, look, x, y, width, colours) {
  const colour = colours[LOOK_COLOURS[look]];
  context.fillStyle = colour;
  context.strokeStyle = colour;
  if (look === LOOK.READ) context.fillRect(x, y - 3, Math.max(width, 1.5), 6);
  else if (look === LOOK.WRITE) context.fillRect(x, y - 7, Math.max(width, 2.5), 14);
  else if (look === LOOK.RECONCILE) context.fillRect(x, y - 4, Math.max(width, 2), 8);
  else if (look === LOOK.UPDATE) context.fillRect(x - 1, y - 6, 2.5, 12);
  else MARK_SHAPES[look](context, x, y, width, colours);
}

const MARK_SHAPES = {
  [LOOK.DRY](context, x, y, width) {
    context.lineWidth = 1.2;
    context.strokeRect(x + 0.5, y - 6, Math.max(width, 4), 12);
  },
  [LOOK.REFUSED](context, x, y, width) {
    if (width > 6) context.fillRect(x, y - 1, width, 2);
    diamond(context, x, y, 6);
  },
  [LOOK.FAILED](context, x, y, width) {
    context.fillRect(x, y - 4, Math.max(width, 2), 8);
    diamond(context, x, y, 6);
  },
  [LOOK.WATCH](context, x, y) {
    context.lineWidth = 1.6;
    context.beginPath();
    context.arc(x, y, 4, 0, 7);
    context.stroke();
  },
  [LOOK.CREATE](context, x, y) {
    context.beginPath();
    context.arc(x, y, 5, 0, 7);
    context.fill();
  },
  [LOOK.DELETE](context, x, y) {
    context.lineWidth = 2.2;
    context.beginPath();
    context.moveTo(x - 4.5, y - 4.5);
    context.lineTo(x + 4.5, y + 4.5);
    context.moveTo(x + 4.5, y - 4.5);
    context.lineTo(x - 4.5, y + 4.5);
    context.stroke();
  },
  [LOOK.DELIVERY](context, x, y) {
    context.beginPath();
    context.moveTo(x - 3.5, y - 4);
    context.lineTo(x + 3.5, y - 4);
    context.lineTo(x, y + 4);
    context.fill();
  },
  [LOOK.FAULT](context, x, y) {
    context.beginPath();
    context.moveTo(x - 6, y + 5);
    context.lineTo(x, y - 6);
    context.lineTo(x + 6, y + 5);
    context.fill();
  },
  [LOOK.CLOCK](context, x, y) {
    context.fillRect(x - 4, y - 4, 8, 8);
  },
};

function diamond(context, x, y, radius) {
  context.beginPath();
  context.moveTo(x, y - radius);
  context.lineTo(x + radius, y);
  context.lineTo(x, y + radius);
  context.lineTo(x - radius, y);
  context.fill();
}

// scene: {width, height, scale, rows: [{lane, y, …}], scrollTop, axis, colours, moment, range, hover, focus, joins, place(record)}
export function drawScene(context, scene) {
  const { width, height, colours } = scene;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, width, height - AXIS_HEIGHT);
  context.clip();
  drawGrid(context, scene);
  drawRange(context, scene);
  context.globalAlpha = scene.joins ? 0.3 : 1;
  for (const row of scene.rows) {
    const top = AXIS_HEIGHT + row.y - scene.scrollTop;
    if (top > height || top + ROW_HEIGHT < AXIS_HEIGHT || (row.isHeader && row.isOpen)) continue;
    drawLane(context, scene, row.lane, top + ROW_HEIGHT / 2);
  }
  context.globalAlpha = 1;
  if (scene.joins) drawJoins(context, scene);
  drawFocus(context, scene);
  context.restore();
  drawAxis(context, scene);
  drawMoment(context, scene, colours);
}

function drawGrid(context, { width, height, scale, axis, colours, rows, scrollTop }) {
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.beginPath();
  for (const { value } of scale.ticks(axis)) {
    const x = Math.round(scale.x(value)) + 0.5;
    context.moveTo(x, AXIS_HEIGHT);
    context.lineTo(x, height);
  }
  context.stroke();
  for (const row of rows) {
    if (!row.isHeader) continue;
    const y = Math.round(AXIS_HEIGHT + row.y - scrollTop);
    if (y < AXIS_HEIGHT - ROW_HEIGHT || y > height) continue;
    context.fillStyle = colours.bg2;
    context.fillRect(0, y, width, ROW_HEIGHT);
  }
}

function drawRange(context, { range, scale, height, colours }) {
  if (!range) return;
  const [left, right] = range.map((value) => scale.x(value)).sort((a, b) => a - b);
  context.fillStyle = colours.accent;
  context.globalAlpha = 0.12;
  context.fillRect(left, AXIS_HEIGHT, right - left, height);
  context.globalAlpha = 1;
  context.fillRect(left, AXIS_HEIGHT, 1, height);
  context.fillRect(right, AXIS_HEIGHT, 1, height);
}

function drawLane(context, scene, lane, y) {
  drawSpans(context, scene, lane, y);
  const { scale } = scene;
  const first = lane.first(scale.from - lane.longest - (scale.to - scale.from) * 0.01);
  const last = lane.first(scale.to + (scale.to - scale.from) * 0.01);
  const count = last - first;
  if (count <= 0) return;
  if (count > scene.width / DENSE_PIXELS) drawDense(context, scene, lane, y, first, last);
  else {
    drawMarks(context, scene, lane, y, first, last);
    if (lane.group === "events") drawTexts(context, scene, lane, y, first, last);
  }
}

// What a fault or a change of the clock was, where there is room for it.
function drawTexts(context, { scale, colours }, lane, y, first, last) {
  context.fillStyle = colours.text;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (let index = first; index < last; index += 1) {
    const x = scale.x(lane.starts[index]) + 11;
    const room = (index + 1 < lane.starts.length ? scale.x(lane.starts[index + 1]) - 8 : scale.width) - x;
    const text = shortText(lane.records[index]);
    if (context.measureText(text).width <= room) context.fillText(text, x, y);
  }
}

function drawMarks(context, { scale, width, colours }, lane, y, first, last) {
  const { starts, ends, looks } = lane;
  const perUnit = width / (scale.to - scale.from);
  for (const look of ORDER) {
    for (let index = first; index < last; index += 1) {
      if (looks[index] !== look) continue;
      drawMark(context, look, (starts[index] - scale.from) * perUnit, y, (ends[index] - starts[index]) * perUnit, colours);
    }
  }
}

const columnCounts = new Map(); // look -> counts per pixel, kept between frames

function drawDense(context, { scale, width, colours }, lane, y, first, last) {
  const { starts, looks } = lane;
  const perUnit = width / (scale.to - scale.from);
  for (const look of ORDER) {
    let counts = columnCounts.get(look);
    if (!counts || counts.length < width) columnCounts.set(look, counts = new Uint32Array(Math.ceil(width) + 1));
    else counts.fill(0);
  }
  const used = new Set();
  for (let index = first; index < last; index += 1) {
    const column = ((starts[index] - scale.from) * perUnit) | 0;
    if (column < 0 || column >= width) continue;
    const look = looks[index];
    columnCounts.get(look)[column] += 1;
    used.add(look);
  }
  const highest = ROW_HEIGHT - 6;
  const bottoms = new Float32Array(Math.ceil(width) + 1);
  for (const look of ORDER) {
    if (!used.has(look)) continue;
    const counts = columnCounts.get(look);
    context.fillStyle = colours[LOOK_COLOURS[look]];
    for (let column = 0; column < width; column += 1) {
      if (!counts[column]) continue;
      if (look === LOOK.REFUSED || look === LOOK.FAILED) {
        diamond(context, column, y - highest / 2 + 3, 3.5);
        continue;
      }
      const size = Math.min(highest - bottoms[column], 3 + 3 * Math.log2(counts[column] + 1));
      if (size <= 0) continue;
      context.fillRect(column, y + highest / 2 - bottoms[column] - size, 1, size);
      bottoms[column] += size;
    }
  }
}

function drawSpans(context, scene, lane, y) {
  const { scale, width, colours, xOf } = scene;
  for (const span of lane.spans) {
    const start = span.from.op === "base" ? scale.from : xOf(span.from);
    const last = span.to();
    const end = last ? xOf(last) : scale.last;
    if (end < scale.from || start > scale.to) continue;
    const left = Math.max(scale.x(start), -5);
    const right = Math.min(scale.x(end), width + 5);
    if (span.from.t === "fault") {
      context.fillStyle = colours.fault;
      context.globalAlpha *= 0.22;
      context.fillRect(left, y - 6, Math.max(right - left, 1), 12);
      context.globalAlpha /= 0.22;
      continue;
    }
    context.fillStyle = span.from.t === "state" ? colours.line : colours.watch;
    context.fillRect(left, y - 1, Math.max(right - left, 1), span.from.t === "state" ? 3 : 1.5);
  }
  drawDepths(context, scene, lane, y);
}

// The number of items that are ready in a controller's queue, as steps.
function drawDepths(context, { scale, width, colours, axis }, lane, y) {
  if (!lane.depths.length || axis !== "real") return;
  context.fillStyle = colours.reconcile;
  context.globalAlpha *= 0.18;
  for (let index = 0; index < lane.depths.length; index += 1) {
    const { at, ready } = lane.depths[index];
    const end = lane.depths[index + 1]?.at ?? scale.last;
    if (end < scale.from || at > scale.to || !ready) continue;
    const size = Math.min(ROW_HEIGHT - 4, 4 + 3 * Math.log2(ready + 1));
    const left = Math.max(scale.x(at), 0);
    context.fillRect(left, y + ROW_HEIGHT / 2 - 2 - size, Math.min(scale.x(end), width) - left, size);
  }
  context.globalAlpha /= 0.18;
}

function drawJoins(context, scene) {
  const { joins, place, colours, scale, width } = scene;
  context.lineWidth = 1.2;
  for (const { from, to } of joins.edges) {
    const [a, b] = [place(from), place(to)];
    if (!a || !b) continue;
    const [x1, x2] = [scale.x(a.start), scale.x(b.start)];
    if ((x1 < 0 && x2 < 0) || (x1 > width && x2 > width)) continue;
    context.strokeStyle = joins.causes.has(to) ? colours.reconcile : colours.accent;
    context.beginPath();
    context.moveTo(x1, a.y);
    const bend = Math.max(12, Math.abs(x2 - x1) / 2);
    context.bezierCurveTo(x1 + bend, a.y, x2 - bend, b.y, x2, b.y);
    context.stroke();
  }
  for (const record of joins.records) {
    const spot = place(record);
    if (spot) drawMark(context, spot.look, scale.x(spot.start), spot.y, scale.x(spot.end) - scale.x(spot.start), colours);
  }
}

function drawFocus(context, { focus, hover, selected, place, scale, colours }) {
  for (const [record, isStrong] of [[hover, false], [selected, true], [focus, true]]) {
    const spot = record && place(record);
    if (!spot) continue;
    const x = scale.x(spot.start);
    const right = Math.max(scale.x(spot.end), x + 2);
    context.strokeStyle = isStrong ? colours.accentText : colours.text2;
    context.lineWidth = isStrong ? 2 : 1;
    context.strokeRect(x - 8, spot.y - 10, right - x + 16, 20);
  }
}

function drawAxis(context, { width, scale, axis, colours }) {
  context.fillStyle = colours.bg;
  context.fillRect(0, 0, width, AXIS_HEIGHT);
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS_HEIGHT - 1, width, 1);
  context.fillStyle = colours.text2;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { value, label } of scale.ticks(axis)) {
    const x = Math.round(scale.x(value));
    context.fillRect(x, AXIS_HEIGHT - 6, 1, 5);
    context.fillText(label, x + 4, AXIS_HEIGHT / 2 - 1);
  }
}

// The moment that all views show: a line with a handle on the axis.
function drawMoment(context, { moment, scale, height, width }, colours) {
  if (moment === null) return;
  const x = Math.round(scale.x(moment));
  if (x < -6 || x > width + 6) return;
  context.fillStyle = colours.accent;
  context.fillRect(x, 0, 1.5, height);
  context.beginPath();
  context.moveTo(x - 6, 0);
  context.lineTo(x + 7, 0);
  context.lineTo(x + 7, 9);
  context.lineTo(x + 0.5, 15);
  context.lineTo(x - 6, 9);
  context.fill();
}
