// The one source of data: a recording, by a stream from the server or embedded in this page.

const BATCH = 500;
const KEPT_STATES = 4000;
const LONGEST_RETRY_PAUSE = 5000; // ms

// The server doesn't know who asks: the page then shows how to log in.
export class LoggedOut extends Error {}

// After a restore, a state is found under the revision that wrote it at first: `of` of its record.
class Origins {
  #of = new Map(); // revision -> the revision under which its state is found

  note(records) {
    for (const record of records) if (record.t === "state" && record.of) this.#of.set(record.rev, record.of);
  }

  // Calls `find` with the revisions under which states are found, and returns its answer by the revisions that were asked for.
  async states(revisions, find) {
    const found = await find(revisions.map((revision) => this.#of.get(revision) ?? revision));
    const states = new Map();
    for (const revision of revisions) {
      const state = found.get(this.#of.get(revision) ?? revision);
      if (state) states.set(revision, state);
    }
    return states;
  }
}

export async function openSource() {
  const embedded = document.getElementById("recording");
  if (embedded && embedded.textContent.trim()) return new EmbeddedSource(JSON.parse(embedded.textContent));
  return new LiveSource();
}

class EmbeddedSource {
  #origins = new Origins();
  canAct = false;

  constructor(recording) {
    this.title = recording.title ?? "";
    this.failure = recording.failure ?? "";
    this.recording = recording;
  }

  follow(onRecords) {
    const records = this.recording.records ?? [];
    this.#origins.note(records);
    onRecords(records);
    return () => {};
  }

  async states(revisions) {
    const kept = this.recording.states ?? {};
    return this.#origins.states([...revisions], (originals) => (
      new Map(originals.filter((revision) => kept[revision]).map((revision) => [revision, kept[revision]]))));
  }

  columns(r) {
    return this.recording.columns?.[r] ?? [];
  }

  async request(seq) {
    return this.recording.requests?.[seq] ?? null;
  }

  async call() {
    throw new Error("This page is a saved file: nothing runs behind it.");
  }
}

class LiveSource {
  canAct = true;
  title = "";
  failure = "";
  #origins = new Origins();
  #kept = new Map(); // revision -> {object, cells}, the least recently used first
  #asked = new Map(); // "revision objects cells" -> promise
  #columns = {};
  #token = null;
  #waiting = null;

  // Calls onRecords with batches, onState with "live", "lost", LoggedOut until the browser is logged in again, or an Error that ends it.
  // Returns a function that stops it.
  follow(onRecords, onState = () => {}) {
    const abort = new AbortController();
    this.#followAlways(onRecords, onState, abort.signal);
    return () => abort.abort();
  }

  async #followAlways(onRecords, onState, signal) {
    let cursor = -1;
    let pause = 250;
    while (!signal.aborted) {
      let failure = null;
      try {
        const since = cursor < 0 ? "" : `&since=${cursor}`;
        const answer = await fetched(`/fakeapiserver/timeline?follow=true${since}`, { signal });
        onState("live");
        pause = 250;
        for await (const records of batches(answer.body)) {
          cursor = Math.max(cursor, records[records.length - 1].n ?? cursor);
          this.#origins.note(records);
          onRecords(records);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 404) {
          onState(error);
          return;
        }
        failure = error;
      }
      if (failure instanceof LoggedOut) {
        this.#token = null;
        pause = LONGEST_RETRY_PAUSE;
        onState(failure);
      } else onState("lost");
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, LONGEST_RETRY_PAUSE);
    }
  }

  // Returns Map(revision -> {object, cells}); forgotten revisions are missing.
  async states(revisions, parts = {}) {
    return this.#origins.states([...revisions], (originals) => this.#found(originals, parts));
  }

  async #found(revisions, { objects = true, cells = false }) {
    const states = new Map();
    const missing = [];
    for (const revision of new Set(revisions)) {
      const kept = this.#kept.get(revision);
      if (kept && (!objects || kept.object !== undefined) && (!cells || kept.cells !== undefined)) {
        this.#kept.delete(revision);
        this.#kept.set(revision, kept);
        states.set(revision, kept);
      } else missing.push(revision);
    }
    if (missing.length) {
      for (let start = 0; start < missing.length; start += BATCH) {
        const part = missing.slice(start, start + BATCH);
        for (const [revision, state] of await this.#statesOf(part, objects, cells)) states.set(revision, state);
      }
    }
    return states;
  }

  async #statesOf(revisions, objects, cells) {
    const key = `${revisions.join()} ${objects} ${cells}`;
    if (!this.#asked.has(key)) this.#asked.set(key, this.#fetchStates(revisions, objects, cells).finally(() => this.#asked.delete(key)));
    return this.#asked.get(key);
  }

  async #fetchStates(revisions, objects, cells) {
    const answer = await this.call("POST", "/fakeapiserver/timeline/states", { revisions, objects, cells });
    Object.assign(this.#columns, answer.columns ?? {});
    const states = new Map();
    for (const [text, state] of Object.entries(answer.states)) {
      const revision = Number(text);
      const merged = { ...this.#kept.get(revision), ...state };
      this.#kept.delete(revision);
      this.#kept.set(revision, merged);
      states.set(revision, merged);
    }
    for (const revision of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_STATES) break;
      this.#kept.delete(revision);
    }
    return states;
  }

  columns(r) {
    return this.#columns[r] ?? [];
  }

  async request(seq) {
    try {
      return await this.call("GET", `/fakeapiserver/timeline/requests/${seq}`);
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  }

  // Sends a request and returns the decoded answer. Error with the sentence of the Status; LoggedOut.
  async call(method, path, body) {
    const headers = { Accept: "application/json" };
    if (method !== "GET") headers["X-Fakeapiserver-Token"] = await this.#session();
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetched(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    return text && (answer.headers.get("Content-Type") ?? "").includes("json") ? JSON.parse(text) : text;
  }

  async #session() {
    if (this.#token === null) {
      this.#waiting ??= fetched("/ui/session", {}).then((answer) => answer.json()).then(
        (session) => session.token ?? "", (error) => {
          if (error.status === 404) return ""; // a listener without log-in
          throw error;
        }).finally(() => { this.#waiting = null; });
      this.#token = await this.#waiting;
    }
    return this.#token;
  }
}

async function fetched(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server can't be reached. Is it still running?");
  }
  if (answer.status === 401) throw new LoggedOut("Not logged in");
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function refusal(answer) {
  const text = await answer.text();
  let message = text;
  try {
    const { message: sentence, detail } = JSON.parse(text);
    message = sentence ?? (typeof detail === "string" ? detail : text);
  } catch {
    // no JSON: the text itself
  }
  const error = new Error(message || `${answer.status} ${answer.statusText}`);
  error.status = answer.status;
  return error;
}

async function* batches(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    const records = lines.filter(Boolean).map((line) => JSON.parse(line));
    if (records.length) yield records;
  }
}
