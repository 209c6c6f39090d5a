// The lanes of the time line and the marks on them, kept up as records arrive.

import { predicateOf } from "./query.js";

// The looks of marks: their shape and colour are timelinedraw.js's.
export const LOOK = Object.freeze({
  READ: 0, WRITE: 1, REFUSED: 2, DRY: 3, WATCH: 4, CREATE: 5, UPDATE: 6, DELETE: 7, DELIVERY: 8, RECONCILE: 9, FAILED: 10, FAULT: 11, CLOCK: 12,
});

const GROUPS = [
  ["events", "Clock and faults"],
  ["clients", "Clients"],
  ["bundled", "Controllers and nodes"],
  ["queues", "Reconciles"],
  ["watches", "Watches"],
  ["objects", "All objects"],
  ["related", "Selected object"],
  ["touched", "Objects of clients"], // what they wrote, and what it owns
];
const OPEN_AT_FIRST = ["events", "clients", "related", "touched"];
// An opened group shows that many lanes; a filter brings up the others.
const MOST_LANES = 200;
const MOST_RELATED = 40;
const READS = new Set(["get", "list", "head", "options"]);
const STATE_LOOKS = { create: LOOK.CREATE, update: LOOK.UPDATE, delete: LOOK.DELETE };

// Marks by their start: parallel arrays, so that drawing touches numbers only.
class Lane {
  starts = [];
  ends = [];
  looks = [];
  records = [];
  spans = []; // {from, to}: records, `to` null while it lasts; drawn below the marks
  depths = []; // queue records
  longest = 0;

  constructor(group, id, title) {
    Object.assign(this, { group, id, title });
  }

  push(start, end, look, record) {
    const count = this.starts.length;
    const index = count && this.starts[count - 1] > start ? this.first(start) : count;
    if (index === count) {
      this.starts.push(start);
      this.ends.push(end);
      this.looks.push(look);
      this.records.push(record);
    } else {
      this.starts.splice(index, 0, start);
      this.ends.splice(index, 0, end);
      this.looks.splice(index, 0, look);
      this.records.splice(index, 0, record);
    }
    if (end - start > this.longest) this.longest = end - start;
  }

  // The index of the first mark that starts at `value` or later.
  first(value) {
    let [low, high] = [0, this.starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  indexOf(record, start) {
    for (let index = this.first(start); index < this.starts.length && this.starts[index] === start; index += 1) {
      if (this.records[index] === record) return index;
    }
    return -1;
  }
}

export function requestLook(request) {
  if (request.status >= 400 || request.status === 0) return LOOK.REFUSED;
  if (request.verb === "watch") return LOOK.WATCH;
  if (request.dry) return LOOK.DRY;
  return READS.has(request.verb) ? LOOK.READ : LOOK.WRITE;
}

export class Lanes {
  #open = new Set(OPEN_AT_FIRST);
  #touched = new Set(); // the uids of what clients wrote, and of what it owns

  constructor(recording) {
    this.recording = recording;
    this.settings = { query: "", axis: "real", object: null };
    this.rebuild();
  }

  isOpen(group) {
    return this.#open.has(group);
  }

  toggle(group) {
    if (!this.#open.delete(group)) this.#open.add(group);
    this.rebuild();
  }

  // Settings: `query`, `axis` and `object` of the page's state. Returns whether they changed something.
  configure(settings) {
    if (JSON.stringify(settings) === JSON.stringify(this.settings)) return false;
    this.settings = settings;
    this.rebuild();
    return true;
  }

  rebuild() {
    const { recording } = this;
    this.generation = recording.generation;
    this.groups = new Map(GROUPS.map(([id, title]) => [id, { id, title, all: new Lane(id, "", title), lanes: new Map() }]));
    this.passes = predicateOf(this.settings.query, recording);
    this.related = this.#relatedUids();
    this.#touched = this.#touchedUids();
    this.from = Infinity;
    this.to = -Infinity;
    const { requests, states, reconciles, faults, clock, restores, controllerChanges, watches, queues } = recording;
    for (const records of [requests, states, reconciles, clock, restores, controllerChanges, ...queues.values()]) this.add(records);
    for (const watch of watches.values()) this.add(watch.deliveries);
    for (const fault of faults) this.add(fault.removed ? [fault.added, fault.removed] : [fault.added]);
  }

  // The selected object, its owners upwards and its dependents downwards, as uids in the order of the lanes.
  #relatedUids() {
    const { object } = this.settings;
    if (!object) return new Set();
    const { recording } = this;
    const uids = [...recording.uidsNamed(object.r, object.ns, object.name)];
    const owners = uids.flatMap((uid) => recording.history(uid).at(-1)?.owners ?? []);
    for (const uid of owners) for (const owner of recording.history(uid).at(-1)?.owners ?? []) if (!owners.includes(owner)) owners.push(owner);
    const dependents = [...uids];
    for (const uid of dependents) {
      for (const dependent of recording.owned.get(uid) ?? []) {
        if (dependents.length < MOST_RELATED && !dependents.includes(dependent)) dependents.push(dependent);
      }
    }
    return new Set([...owners.reverse(), ...dependents]);
  }

  // Where a record is on the axis.
  x(record) {
    if (this.settings.axis === "real") return record.at ?? 0;
    return record.time ?? this.recording.timeAt(record.at) ?? 0;
  }

  // Where the record of a request or reconcile ends; in the cluster's time they take none.
  #end(record, start) {
    return this.settings.axis === "real" ? start + (record.ms ?? 0) / 1000 : start;
  }

  // `title` and `about`, the longer one: functions.
  #lane(groupId, id, title, about = title) {
    const group = this.groups.get(groupId);
    if (!this.#open.has(groupId)) return group.all;
    let lane = group.lanes.get(id);
    if (!lane) {
      lane = new Lane(groupId, id, title());
      lane.about = about();
      group.lanes.set(id, lane);
    }
    return lane;
  }

  add(records) {
    for (const record of records) {
      const place = this.#readers[record.t];
      if (!place) continue;
      if (record.op === "base") {
        this.#placeState(record);
        continue;
      }
      const start = this.x(record);
      if (start < this.from) this.from = start;
      if (start > this.to) this.to = start;
      place.call(this, record, start);
    }
  }

  #readers = {
    request(record, start) {
      // a state is recorded before the request that wrote it
      for (const state of this.recording.writes.get(record.seq) ?? []) {
        if (!record.bundled) this.#touch(state.uid);
        this.#placeState(state);
      }
      if (!this.passes(record)) return;
      this.#push(record, start, this.#end(record, start), requestLook(record));
      if (record.verb === "watch" && record.status < 400) {
        const lane = this.#watchLane(record);
        if (lane.id) lane.spans.push({ from: record, to: () => this.recording.watches.get(record.seq)?.end ?? null });
      }
    },
    state(record) {
      if (record.owners.some((owner) => this.#touched.has(owner))) this.#touch(record.uid);
      this.#placeState(record);
    },
    delivery(record, start) {
      if (this.passes(record)) this.#push(record, start, start, LOOK.DELIVERY);
    },
    reconcile(record, start) {
      if (this.passes(record)) this.#push(record, start, this.#end(record, start), record.error ? LOOK.FAILED : LOOK.RECONCILE);
    },
    queue(record) {
      if (this.#open.has("queues")) this.groups.get("queues").lanes.get(record.controller)?.depths.push(record);
    },
    fault(record, start) {
      const lane = this.laneOf(record);
      lane.push(start, start, LOOK.FAULT, record);
      if (record.change === "add") {
        lane.spans.push({ from: record, to: () => this.recording.faults.find((fault) => fault.added === record)?.removed ?? null });
      }
    },
    clock(record, start) {
      this.#push(record, start, start, LOOK.CLOCK);
    },
    restore(record, start) {
      this.#push(record, start, start, LOOK.CLOCK);
    },
    controller(record, start) {
      this.#push(record, start, start, LOOK.CLOCK);
    },
  };

  #push(record, start, end, look) {
    this.laneOf(record).push(start, end, look, record);
  }

  // Puts a state on the lanes of its object on which it isn't yet.
  #placeState(state) {
    const start = this.x(state);
    const groups = this.passes(state) ? ["objects", ...(this.#touched.has(state.uid) ? ["touched"] : [])] : [];
    if (this.related.has(state.uid)) groups.push("related");
    for (const group of groups) {
      const lane = this.#objectLane(group, state);
      if (lane.id && (state.op === "base" || state.op === "create") && !lane.spans.some((span) => span.from === state)) {
        lane.spans.push({ from: state, to: () => this.recording.history(state.uid).find((each) => each.op === "delete" && each.rev > state.rev) ?? null });
      }
      if (state.op !== "base" && lane.indexOf(state, start) < 0) lane.push(start, start, STATE_LOOKS[state.op] ?? LOOK.UPDATE, state);
    }
  }

  #touchedUids() {
    const { recording } = this;
    const uids = new Set();
    for (const request of recording.requests) {
      if (!request.bundled) for (const state of recording.writes.get(request.seq) ?? []) uids.add(state.uid);
    }
    for (const uid of uids) for (const dependent of recording.owned.get(uid) ?? []) uids.add(dependent);
    return uids;
  }

  // From now on the object and what it owns have lanes of their own.
  #touch(uid) {
    if (this.#touched.has(uid)) return;
    this.#touched.add(uid);
    for (const state of this.recording.history(uid)) this.#placeState(state);
    for (const dependent of this.recording.owned.get(uid) ?? []) this.#touch(dependent);
  }

  #objectLane(group, { uid, r, ns, name }) {
    const kind = this.recording.kind(r);
    return this.#lane(group, uid, () => `${kind.short?.[0] ?? kind.resource}/${name}`, () => `${kind.kind} ${ns ? `${ns}/` : ""}${name}`);
  }

  #watchLane(request) {
    const scope = [request.r || request.path, request.ns, request.name].filter(Boolean).join("/");
    return this.#lane("watches", `${request.client} ${scope}`, () => `${request.client}: ${scope}`);
  }

  // The lane that a record is on, as the groups are open now. It need not be visible.
  laneOf(record) {
    if (record.t === "request") return this.#lane(record.bundled ? "bundled" : "clients", record.client, () => record.client || "unknown");
    if (record.t === "state") {
      const { uid } = record;
      return this.#objectLane(this.related.has(uid) ? "related" : this.#touched.has(uid) ? "touched" : "objects", record);
    }
    if (record.t === "delivery") {
      const watch = this.recording.watches.get(record.seq);
      return watch ? this.#watchLane(watch.request) : this.#lane("watches", "?", () => "unknown watch");
    }
    if (record.t === "reconcile") return this.#lane("queues", record.controller, () => record.controller);
    if (record.t === "fault") return this.#lane("events", "faults", () => "Faults");
    if (record.t === "controller") return this.#lane("events", "controllers", () => "Controllers' modes");
    return this.#lane("events", "clock", () => "Clock and snapshots");
  }

  // Takes what has arrived. Returns whether everything was built again.
  take(records) {
    if (this.generation !== this.recording.generation) {
      this.rebuild();
      return true;
    }
    this.add(records);
    return false;
  }

  // The rows from top to bottom: {group, lane, isHeader, more}: the header of a closed group has the marks of all its lanes.
  rows() {
    const rows = [];
    const relatedOrder = [...this.related];
    for (const group of this.groups.values()) {
      const lanes = [...group.lanes.values()].filter((lane) => lane.starts.length || lane.spans.length);
      if (!lanes.length && !group.all.starts.length) continue;
      if (group.id === "related") lanes.sort((a, b) => relatedOrder.indexOf(a.id) - relatedOrder.indexOf(b.id));
      const isOpen = this.#open.has(group.id);
      rows.push({ group, lane: group.all, isHeader: true, isOpen, count: lanes.length });
      for (const lane of lanes.slice(0, MOST_LANES)) rows.push({ group, lane, isHeader: false });
      if (lanes.length > MOST_LANES) rows.push({ group, lane: new Lane(group.id, "", ""), isHeader: false, more: lanes.length - MOST_LANES });
    }
    return rows;
  }
}
