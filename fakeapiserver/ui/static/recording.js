// What happened: the records of the stream, indexed so that each question takes a bisection rather than a walk over all of them.
// A moment is a revision; null is the newest.

// Forgetting takes a walk over everything, so it waits until there is this much to forget.
const FORGOTTEN_AT_ONCE = 20000;
const NO_ITEMS = Object.freeze([]);

// The index of the first item whose key is greater than `value`; `items` are sorted by it.
export function bisect(items, value, key) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(items[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Inserts into an array that is sorted by `key`, into which most items come in order.
export function insertSorted(items, item, key) {
  const value = key(item);
  if (!items.length || key(items[items.length - 1]) <= value) items.push(item);
  else items.splice(bisect(items, value, key), 0, item);
}

const revOf = (state) => state.rev;
const atOf = (record) => record.at;

function pushTo(map, key, item) {
  const items = map.get(key);
  if (items) items.push(item);
  else map.set(key, [item]);
}

export class Recording {
  #listeners = new Set();
  #resumed = false; // the stream goes on after a pause; base states then say that what was missed is forgotten
  #readers = {
    start: (record) => this.#begin(record),
    kinds: (record) => {
      for (const kind of record.kinds) this.kinds.set(kind.r, kind);
    },
    state: (record) => this.#addState(record),
    request: (record) => this.#addRequest(record),
    watch: (record) => {
      const watch = this.watches.get(record.seq);
      if (watch) watch.end = record;
    },
    delivery: (record) => {
      this.watches.get(record.seq)?.deliveries.push(record);
      for (const rev of record.rev) pushTo(this.deliveries, rev, record);
    },
    reconcile: (record) => this.#addReconcile(record),
    queue: (record) => pushTo(this.queues, record.controller, record),
    fault: (record) => this.#addFault(record),
    clock: (record) => this.clock.push(record),
    controller: (record) => {
      this.controllers[record.name] = record.mode;
      this.controllerChanges.push(record);
    },
    restore: (record) => this.restores.push(record),
    gap: (record) => this.#forget(record.before),
  };

  constructor() {
    this.#reset();
  }

  #reset() {
    this.start = null;
    this.kinds = new Map(); // r -> kind
    this.controllers = {}; // name -> mode
    this.controllerChanges = [];
    this.requests = []; // by `at`
    this.reconciles = []; // by `at`
    this.states = []; // by revision
    this.watches = new Map(); // seq -> {request, deliveries, end}
    this.queues = new Map(); // controller -> queue records
    this.faults = []; // {id, fault, added, removed}
    this.clock = [];
    this.restores = [];
    this.deliveries = new Map(); // revision -> deliveries
    this.revision = 0;
    this.oldest = 0;
    this.newestAt = 0;
    this.size = 0;
    this.generation = 0; // rises when records are forgotten: derived indexes begin again
    this.requestOf = new Map(); // seq -> request
    this.reconcileOf = new Map(); // id -> reconcile
    this.stateOf = new Map(); // revision -> state
    this.writes = new Map(); // seq -> states
    this.reactions = new Map(); // revision -> reconciles
    this.actions = new Map(); // reconcile id -> requests
    this.repeats = new Map(); // reconcile id -> the reconciles that it asked for
    this.histories = new Map(); // uid -> states
    this.uidsOf = new Map(); // r -> set of uids
    this.names = new Map(); // r/ns/name -> uids
    this.owned = new Map(); // uid -> set of uids
    this.tallies = new Map(); // r -> [{rev, count}]
  }

  // Takes a batch of records and calls the listeners with it.
  add(records) {
    for (const record of records) {
      this.#readers[record.t]?.(record);
      if (record.at > this.newestAt) this.newestAt = record.at;
    }
    this.size += records.length;
    for (const listener of this.#listeners) listener(records);
  }

  on(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #begin(record) {
    if (this.start && this.start.began !== record.began) this.#beginAgain(); // another server
    else this.#resumed = this.states.length > 0;
    this.start = record;
    this.controllers = { ...record.controllers };
    this.oldest = Math.max(this.oldest, record.revision);
    this.revision = Math.max(this.revision, record.revision);
  }

  #beginAgain() {
    const { start, kinds, controllers, oldest, generation } = this;
    this.#reset();
    Object.assign(this, { start, kinds, controllers, oldest, revision: oldest, generation: generation + 1 });
  }

  #addState(state) {
    const since = state.op === "base" ? Math.min(state.rev, this.oldest) : state.rev;
    if (state.op === "base" && this.#resumed) this.#beginAgain();
    this.#resumed = false;
    const history = this.histories.get(state.uid);
    const existed = history !== undefined && history[history.length - 1].op !== "delete";
    if (history) insertSorted(history, state, revOf);
    else {
      this.histories.set(state.uid, [state]);
      this.#register(state);
    }
    insertSorted(this.states, state, revOf);
    this.stateOf.set(state.rev, state);
    if (state.by) pushTo(this.writes, state.by, state);
    for (const owner of state.owners ?? NO_ITEMS) {
      if (!this.owned.has(owner)) this.owned.set(owner, new Set());
      this.owned.get(owner).add(state.uid);
    }
    if (existed === (state.op === "delete")) this.#tally(state.r, since, existed ? -1 : 1);
    if (state.rev > this.revision) this.revision = state.rev;
  }

  #register({ r, ns, name, uid }) {
    if (!this.uidsOf.has(r)) this.uidsOf.set(r, new Set());
    this.uidsOf.get(r).add(uid);
    pushTo(this.names, `${r}/${ns ?? ""}/${name}`, uid);
  }

  #tally(r, rev, difference) {
    if (!this.tallies.has(r)) this.tallies.set(r, []);
    const tallies = this.tallies.get(r);
    const last = tallies[tallies.length - 1];
    if (!last || last.rev < rev) tallies.push({ rev, count: (last?.count ?? 0) + difference });
    else if (last.rev === rev) last.count += difference;
    else {
      const index = bisect(tallies, rev, revOf);
      for (let later = index; later < tallies.length; later += 1) tallies[later].count += difference;
      const before = tallies[index - 1];
      if (before?.rev === rev) before.count += difference;
      else tallies.splice(index, 0, { rev, count: (before?.count ?? 0) + difference });
    }
  }

  #addRequest(request) {
    insertSorted(this.requests, request, atOf);
    this.requestOf.set(request.seq, request);
    if (request.verb === "watch" && request.status < 400) this.watches.set(request.seq, { request, deliveries: [], end: null });
    if (request.reconcile) pushTo(this.actions, request.reconcile, request);
  }

  #addReconcile(reconcile) {
    insertSorted(this.reconciles, reconcile, atOf);
    this.reconcileOf.set(reconcile.id, reconcile);
    for (const rev of reconcile.causes) pushTo(this.reactions, rev, reconcile);
    if (reconcile.after) pushTo(this.repeats, reconcile.after, reconcile);
  }

  #addFault(record) {
    if (record.change === "add") this.faults.push({ id: record.id, fault: record.fault, added: record, removed: null });
    else {
      const fault = this.faults.findLast((each) => each.id === record.id && !each.removed);
      if (fault) fault.removed = record;
    }
  }

  // Drops what is older than a revision, but for the last state of each object that still existed then.
  #forget(before) {
    this.oldest = Math.max(this.oldest, before);
    const index = bisect(this.states, before - 1, revOf);
    if (index < FORGOTTEN_AT_ONCE) return;
    const at = this.at(before) ?? 0;
    const kept = [];
    for (const [uid, history] of this.histories) {
      const last = bisect(history, before, revOf) - 1;
      const rest = history.slice(Math.max(last, 0));
      if (last >= 0 && rest[0].op === "delete" && rest.length === 1) continue;
      kept.push([uid, rest]);
    }
    const records = {
      requests: this.requests.filter((request) => request.at >= at || this.#isOpen(request)),
      reconciles: this.reconciles.filter((reconcile) => reconcile.at >= at),
      deliveries: [...this.watches.values()].flatMap((watch) => watch.deliveries.filter((delivery) => delivery.at >= at)),
      ends: [...this.watches.values()].map((watch) => watch.end).filter(Boolean),
    };
    const { start, kinds, controllers, controllerChanges, queues, faults, clock, restores, revision, newestAt, size } = this;
    const generation = this.generation + 1;
    this.#reset();
    Object.assign(this, { start, kinds, controllers, controllerChanges, faults, clock, restores, newestAt, size, generation });
    this.oldest = before;
    for (const [controller, items] of queues) this.queues.set(controller, items.filter((record) => record.at >= at));
    for (const request of records.requests) this.#addRequest(request);
    for (const reconcile of records.reconciles) this.#addReconcile(reconcile);
    const states = kept.flatMap(([, history]) => history.map((state, place) => (
      place === 0 && state.rev <= before && state.op !== "delete" ? { ...state, op: "base" } : state)));
    states.sort((a, b) => a.rev - b.rev);
    for (const state of states) this.#addState(state);
    for (const record of records.deliveries) this.#readers.delivery(record);
    for (const record of records.ends) this.#readers.watch(record);
    this.revision = Math.max(revision, this.revision);
  }

  #isOpen(request) {
    const watch = this.watches.get(request.seq);
    return watch !== undefined && watch.end === null;
  }

  kind(r) {
    return this.kinds.get(r) ?? { r, group: r.includes(".") ? r.slice(r.indexOf(".") + 1) : "", version: "", resource: r.split(".")[0],
      kind: r, namespaced: true, short: [] };
  }

  request(seq) {
    return this.requestOf.get(seq) ?? null;
  }

  reconcile(id) {
    return this.reconcileOf.get(id) ?? null;
  }

  // The state that a revision wrote, or null.
  state(rev) {
    return this.stateOf.get(rev) ?? null;
  }

  // The last state that was written until a moment, of whatever object; null before the first.
  stateAt(moment) {
    return this.states[bisect(this.states, moment ?? this.revision, revOf) - 1] ?? null;
  }

  // The revision of the next (step 1) or previous (-1) write beside a moment; null for now.
  neighbour(moment, step) {
    const here = moment ?? this.revision;
    if (step > 0) {
      const next = this.states[bisect(this.states, here, revOf)]?.rev ?? this.revision;
      return next >= this.revision ? null : next;
    }
    return Math.max(this.states[bisect(this.states, here - 1, revOf) - 1]?.rev ?? 0, this.oldest);
  }

  // The cluster's time of a moment, in seconds since 1970; of now, that of the newest record.
  time(moment) {
    return this.stateAt(moment)?.time ?? this.start?.time ?? null;
  }

  // The real time of a moment, in seconds since the recording began.
  at(moment) {
    if (moment === null) return this.newestAt;
    const state = this.stateAt(moment);
    return state && state.op !== "base" ? state.at : 0;
  }

  // The cluster's time at a real time: that of the last request until then.
  timeAt(at) {
    const index = bisect(this.requests, at, atOf) - 1;
    return this.requests[index]?.time ?? this.start?.time ?? null;
  }

  // The last revision that was written until a real time.
  revisionAt(at) {
    const state = this.states[bisect(this.states, at, (each) => (each.op === "base" ? 0 : each.at)) - 1];
    return Math.max(state?.rev ?? this.oldest, this.oldest);
  }

  // The last revision that was written until a time of the cluster's clock, as far as that clock has only gone forward.
  revisionAtTime(time) {
    const state = this.states[bisect(this.states, time, (each) => (each.op === "base" ? 0 : each.time)) - 1];
    return Math.max(state?.rev ?? this.oldest, this.oldest);
  }

  // The newest state of an object until a moment if the object exists then, else null.
  byUid(uid, moment = null) {
    const history = this.histories.get(uid);
    if (!history) return null;
    const state = moment === null ? history[history.length - 1] : history[bisect(history, moment, revOf) - 1];
    return state && state.op !== "delete" ? state : null;
  }

  // The objects of a kind that exist at a moment.
  ofKind(r, moment = null) {
    const heads = [];
    for (const uid of this.uidsOf.get(r) ?? NO_ITEMS) {
      const head = this.byUid(uid, moment);
      if (head) heads.push(head);
    }
    return heads;
  }

  // All objects that exist at a moment and that `filter` lets pass.
  * objects(moment = null, filter = () => true) {
    for (const uid of this.histories.keys()) {
      const head = this.byUid(uid, moment);
      if (head && filter(head)) yield head;
    }
  }

  find(r, ns, name, moment = null) {
    for (const uid of this.uidsNamed(r, ns, name)) {
      const head = this.byUid(uid, moment);
      if (head) return head;
    }
    return null;
  }

  // The uids of all objects that ever had this name, in the order of their creation.
  uidsNamed(r, ns, name) {
    return this.names.get(`${r}/${ns ?? ""}/${name}`) ?? NO_ITEMS;
  }

  // The objects that name an owner in their ownerReferences at a moment.
  dependents(uid, moment = null) {
    const heads = [];
    for (const each of this.owned.get(uid) ?? NO_ITEMS) {
      const head = this.byUid(each, moment);
      if (head?.owners?.includes(uid)) heads.push(head);
    }
    return heads;
  }

  // All states of an object, in their order.
  history(uid) {
    return this.histories.get(uid) ?? NO_ITEMS;
  }

  // The number of objects of each kind at a moment: Map(r -> number).
  counts(moment = null) {
    const counts = new Map();
    for (const [r, tallies] of this.tallies) {
      const index = moment === null ? tallies.length : bisect(tallies, moment, revOf);
      counts.set(r, tallies[index - 1]?.count ?? 0);
    }
    return counts;
  }

  // The objects that differ between two moments: [{uid, head, before, after}], states or null, in the order of their last write.
  changesBetween(from, to) {
    const uids = new Set();
    for (let index = bisect(this.states, to, revOf) - 1; index >= 0 && this.states[index].rev > from; index -= 1) {
      uids.add(this.states[index].uid);
    }
    const changes = [];
    for (const uid of uids) {
      const [before, after] = [this.byUid(uid, from), this.byUid(uid, to)];
      if ((before || after) && before?.rev !== after?.rev) changes.push({ uid, head: after ?? before, before, after });
    }
    return changes.reverse();
  }

  // What led directly to a record: a request to a state, a reconcile to a request, states and an earlier reconcile to a reconcile.
  // Returns records.
  causesOf(record) {
    if (record.t === "state") return [this.request(record.by)].filter(Boolean);
    if (record.t === "request") return [this.reconcile(record.reconcile)].filter(Boolean);
    if (record.t === "reconcile") return [this.reconcile(record.after), ...record.causes.map((rev) => this.state(rev))].filter(Boolean);
    if (record.t === "delivery") return record.rev.map((rev) => this.state(rev)).filter(Boolean);
    return [];
  }

  // What a record led to directly: a request to states, a state to deliveries and reconciles, a reconcile to requests.
  effectsOf(record) {
    if (record.t === "request") return this.writes.get(record.seq) ?? NO_ITEMS;
    if (record.t === "state") {
      return [...(this.deliveries.get(record.rev) ?? NO_ITEMS), ...(this.reactions.get(record.rev) ?? NO_ITEMS)];
    }
    if (record.t === "reconcile") return [...(this.actions.get(record.id) ?? NO_ITEMS), ...(this.repeats.get(record.id) ?? NO_ITEMS)];
    return [];
  }

  // What led to the state of a revision: {state, request, reconcile, causes: states}, each null or empty where unknown.
  causes(rev) {
    const state = this.state(rev);
    const request = state ? this.request(state.by) : null;
    const reconcile = request ? this.reconcile(request.reconcile) : null;
    return { state, request, reconcile, causes: reconcile ? this.causesOf(reconcile) : [] };
  }

  // What the state of a revision led to: {state, deliveries: [{delivery, watch}], reconciles, requests}.
  effects(rev) {
    const reconciles = this.reactions.get(rev) ?? NO_ITEMS;
    return {
      state: this.state(rev),
      deliveries: (this.deliveries.get(rev) ?? NO_ITEMS).map((delivery) => ({ delivery, watch: this.watches.get(delivery.seq) ?? null })),
      reconciles,
      requests: reconciles.flatMap((reconcile) => this.actions.get(reconcile.id) ?? NO_ITEMS),
    };
  }
}
