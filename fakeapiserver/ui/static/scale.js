// The part of the time axis that is visible, and its ticks.

import { clockTime } from "./dom.js";

const NARROWEST_WINDOW = 1e-5; // seconds
const STEPS = [1, 2, 5];
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

// `mode`: "fit" shows everything, "tail" follows the newest, "free" stays.
export class Scale {
  mode = "fit";
  from = 0;
  to = 1;
  width = 1;

  x(value) {
    return ((value - this.from) / (this.to - this.from)) * this.width;
  }

  value(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  // Takes the extent of what there is, from the first to the last mark.
  extend(first, last) {
    this.first = Number.isFinite(first) ? first : 0;
    this.last = Number.isFinite(last) ? Math.max(last, this.first) : this.first;
    const whole = this.#whole();
    if (this.mode === "fit") {
      this.from = this.first - whole * 0.015;
      this.to = this.from + whole;
    } else if (this.mode === "tail") {
      const window = this.to - this.from;
      this.to = this.last + window * 0.04;
      this.from = this.to - window;
    }
  }

  fit() {
    this.mode = "fit";
    this.extend(this.first, this.last);
  }

  // Zooms by a factor (less than 1 shows less), keeping what is at `x`.
  zoom(factor, x = this.width / 2) {
    const anchor = this.value(x);
    const window = Math.max((this.to - this.from) * factor, NARROWEST_WINDOW);
    if (window > this.#whole()) {
      this.fit();
      return;
    }
    const ratio = window / (this.to - this.from);
    this.from = anchor - (anchor - this.from) * ratio;
    this.to = this.from + window;
    this.#keepMode();
  }

  pan(pixels) {
    const distance = (pixels / this.width) * (this.to - this.from);
    // at least a part of what there is stays in view
    const window = this.to - this.from;
    this.from = Math.min(Math.max(this.from + distance, this.first - window * 0.9), this.last - window * 0.1);
    this.to = this.from + window;
    this.#keepMode();
  }

  #whole() {
    return Math.max((this.last - this.first) * 1.04, 0.01);
  }

  // Shows a part of the axis with some room around it.
  show(start, end) {
    const room = Math.max((end - start) * 0.1, 1e-4);
    [this.from, this.to, this.mode] = [start - room, end + room, "free"];
  }

  // Moves so that a value is visible.
  reveal(start, end = start) {
    const window = this.to - this.from;
    if (start >= this.from + window * 0.02 && end <= this.to - window * 0.02) return;
    this.from = start - window * 0.3;
    this.to = this.from + window;
    this.mode = "free";
  }

  // The following stays on while the newest is in view.
  #keepMode() {
    this.mode = this.to >= this.last && this.from <= this.last && this.mode !== "free" ? "tail" : "free";
  }

  // [{value, label}], some 120 pixels apart.
  ticks(axis) {
    const rough = ((this.to - this.from) / this.width) * 120;
    const step = axis === "cluster" && rough >= 0.5 ? clockStep(rough) : decimalStep(rough);
    const ticks = [];
    for (let value = Math.ceil(this.from / step) * step; value <= this.to && ticks.length < 60; value += step) {
      ticks.push({ value, label: axis === "cluster" ? clockTime(value, step >= 1) : secondsLabel(value, step) });
    }
    return ticks;
  }
}

function decimalStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return (STEPS.find((step) => step * power >= rough) ?? 10) * power;
}

function clockStep(rough) {
  return CLOCK_STEPS.find((step) => step >= rough) ?? Math.ceil(rough / 86400) * 86400;
}

function secondsLabel(value, step) {
  if (Math.abs(value) < step / 2) return "0";
  if (step < 0.001) return `${(value * 1000).toFixed(Math.max(0, -Math.floor(Math.log10(step * 1000))))} ms`;
  if (step < 1 && Math.abs(value) < 1) return `${Math.round(value * 1000)} ms`;
  return `${value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))} s`;
}
