// Looks for problems again when something has changed: one search at a time, and with pauses, so that it takes little of the page's time.

import { problems } from "./problems.js";

const SHORTEST_PAUSE = 500; // ms
const LONGEST_PAUSE = 3000; // ms
const REST = 5; // how many times as long as a search the pause after it is

export class ProblemFinder {
  #listeners = new Set();
  #isRunning = false;
  #searched = ""; // what the list is about
  #timer = 0;
  list = null; // null while nothing is known yet
  moment = null; // that of the list
  error = null;

  constructor(app) {
    this.app = app;
  }

  on(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  update() {
    const { recording, state } = this.app;
    const { moment } = state.get();
    const key = `${moment} ${moment === null ? recording.size : ""} ${recording.start?.began}`;
    if (!recording.start || this.#isRunning || this.#timer || key === this.#searched) return;
    this.#searched = key;
    this.#search(moment);
  }

  async #search(moment) {
    this.#isRunning = true;
    const began = performance.now();
    try {
      this.list = await problems(this.app.recording, this.app.source, moment);
      this.moment = moment;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.#isRunning = false;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.update();
    }, Math.min(LONGEST_PAUSE, Math.max(SHORTEST_PAUSE, REST * (performance.now() - began))));
    for (const listener of this.#listeners) listener();
  }
}
