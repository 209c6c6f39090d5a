// The objects, requests and reconciles of one moment, as the rules of "why" ask for them.

import { objectLink } from "./cause.js";

// Upper bound of objects that one question loads.
const MOST_ASKED = 2000;

export class World {
  #loaded = new Map(); // revision of a state -> object

  // `moment`: a revision, or null for now.
  constructor(recording, source, moment = null) {
    this.recording = recording;
    this.source = source;
    this.moment = moment;
  }

  // The cluster's time at this moment, in seconds since 1970.
  get time() {
    return this.recording.time(this.moment ?? this.recording.revision);
  }

  // Seconds since the recording began.
  get at() {
    return this.moment === null ? Infinity : this.recording.at(this.moment);
  }

  isPast(record) {
    return record.at <= this.at;
  }

  // ------------------------------------------------------------- objects

  heads(r, ns = null) {
    const heads = [...this.recording.ofKind(r, this.moment)];
    return ns === null ? heads : heads.filter((head) => head.ns === ns);
  }

  head(r, ns, name) {
    return this.recording.find(r, ns ?? "", name, this.moment) ?? null;
  }

  has(r, ns, name) {
    return this.head(r, ns, name) !== null;
  }

  async object(r, ns, name) {
    const head = this.head(r, ns, name);
    return head ? (await this.load([head]))[0] ?? null : null;
  }

  async all(r, ns = null) {
    return this.load(this.heads(r, ns).slice(0, MOST_ASKED));
  }

  // The objects of heads in their order; those whose state is forgotten are left out.
  async load(heads) {
    const missing = heads.filter((head) => !this.#loaded.has(head.rev)).map((head) => head.rev);
    if (missing.length) {
      const states = await this.source.states(missing, { objects: true, cells: false });
      for (const [revision, state] of states) this.#loaded.set(revision, state.object);
    }
    return heads.map((head) => this.#loaded.get(head.rev)).filter(Boolean);
  }

  byUid(uid) {
    return this.recording.byUid(uid, this.moment) ?? null;
  }

  dependents(uid) {
    return [...this.recording.dependents(uid, this.moment)];
  }

  // The Events about an object, the newest first. Their names begin with that of the object.
  async eventsOf(object) {
    const { name, namespace, uid } = object.metadata;
    const heads = ["events", "events.events.k8s.io"].flatMap((r) => this.heads(r)).filter((head) =>
      head.name.startsWith(name) && (head.ns === (namespace ?? "") || (!namespace && head.ns === "default")));
    const about = (event) => event.involvedObject ?? event.regarding ?? {};
    const events = (await this.load(heads)).filter((event) =>
      about(event).name === name && about(event).kind === object.kind && (!about(event).uid || !uid || about(event).uid === uid || !namespace));
    return events.sort((a, b) => eventTime(b) - eventTime(a));
  }

  // ------------------------------------------------------------- kinds

  get kinds() {
    return [...this.recording.kinds.values()];
  }

  kindName(r) {
    return this.recording.kind(r).kind;
  }

  // The `r` of an apiVersion and kind, or null: ("apps/v1", "Deployment") -> "deployments.apps".
  resource(apiVersion, kind) {
    const group = apiVersion?.includes("/") ? apiVersion.split("/")[0] : "";
    return this.kinds.find((one) => one.kind === kind && one.group === group)?.r ?? null;
  }

  isCustom(r) {
    return r.includes(".") && this.has("customresourcedefinitions.apiextensions.k8s.io", "", r);
  }

  // A link with the kind's name: "Deployment web".
  link(r, ns, name) {
    return objectLink(r, ns, name, `${this.kindName(r)} ${name}`);
  }

  linkOf(head) {
    return this.link(head.r, head.ns, head.name);
  }

  // ------------------------------------------------------------- who did it

  // The request that wrote a state, or null.
  writerOf(state) {
    return state?.by ? this.recording.request(state.by) ?? null : null;
  }

  // States of one object until this moment, the oldest first.
  history(uid) {
    const states = this.recording.history(uid) ?? [];
    return this.moment === null ? [...states] : states.filter((state) => state.rev <= this.moment);
  }

  // "run", "step" or "off" of a controller at this moment; "off" if the cluster was started without it, null if that is unknown.
  mode(controller) {
    const changes = this.recording.controllerChanges.filter((one) => one.name === controller && this.isPast(one));
    const began = this.recording.start?.controllers;
    return changes.at(-1)?.mode ?? (began ? began[controller] ?? "off" : null);
  }

  // The requests until this moment from an index on: [index, request], the newest first.
  * newestRequests(most = Infinity) {
    const requests = this.recording.requests;
    for (let index = requests.length - 1; index >= 0 && most > 0; index -= 1) {
      if (!this.isPast(requests[index])) continue;
      most -= 1;
      yield requests[index];
    }
  }
}

export function eventTime(event) {
  const text = event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.deprecatedLastTimestamp ??
    event.metadata?.creationTimestamp;
  return text ? Date.parse(text) / 1000 : 0;
}

export function conditionOf(object, type) {
  return (object?.status?.conditions ?? []).find((one) => one.type === type) ?? null;
}

// Numbers of quantities: 100m -> 0.1, 1Gi -> 1073741824; NaN for what is none.
export function quantity(text) {
  const match = /^([+-]?[0-9.]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|n|u|e[+-]?\d+|E[+-]?\d+)?$/.exec(String(text ?? ""));
  if (!match) return Number.NaN;
  const powers = { n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
    Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
  const suffix = match[2] ?? "";
  return Number(match[1]) * (powers[suffix] ?? (suffix ? Number(`1${suffix}`) : 1));
}
