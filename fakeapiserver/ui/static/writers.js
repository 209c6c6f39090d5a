// Who fights with whom: writers that change the same field back and forth, hot loops, and writes that change nothing.

import { cause, listed, momentLink, numberOf, objectLink, requestLink, sentence } from "./cause.js";
import { objectChanges } from "./diff.js";

// Objects whose purpose is to be written again and again.
const BEATING = new Set(["events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io"]);
// States of an object that are compared, reversals that make a fight, and writes that make a loop.
const STATES = 60;
const REVERSALS = 2;
const LOOP = 12;
const LOOP_SECONDS = 60;
const IDLE_WRITES = 6;
// Fields that count or date.
const RISING = /(?:^metadata\.(?:generation|resourceVersion|managedFields)|[tT]ime(?:stamp)?$|observedGeneration$)/;

// Fights over the fields of one object: [{path, sides: [{client, values: [texts], times}], reversals, first, last}], the worst first.
export async function fightsOver(world, head) {
  const history = world.history(head.uid).filter((state) => state.op !== "delete").slice(-STATES);
  if (new Set(history.map((state) => world.writerOf(state)?.client)).size < 2) return [];
  const objects = new Map((await world.load(history)).map((object) => [Number(object.metadata.resourceVersion), object]));
  const moves = new Map();
  for (const [index, state] of history.entries()) {
    const [before, after] = [objects.get(history[index - 1]?.rev), objects.get(state.rev)];
    const request = world.writerOf(state);
    if (!before || !after || !request) continue;
    for (const change of objectChanges(before, after)) {
      if (RISING.test(change.path)) continue;
      if (!moves.has(change.path)) moves.set(change.path, []);
      moves.get(change.path).push({ ...change, client: request.client, request, state });
    }
  }
  return [...moves].map(([path, all]) => fightOf(path, all)).filter(Boolean).sort((a, b) => b.reversals - a.reversals);
}

function fightOf(path, moves) {
  let reversals = 0;
  for (const [index, move] of moves.entries()) {
    const previous = moves[index - 1];
    if (previous && previous.client !== move.client && JSON.stringify(move.after) === JSON.stringify(previous.before)) reversals += 1;
  }
  if (reversals < REVERSALS) return null;
  const sides = new Map();
  for (const move of moves) {
    const side = sides.get(move.client) ?? { client: move.client, values: new Set(), times: 0, last: move };
    side.values.add(shortValue(move.after));
    side.times += 1;
    side.last = move;
    sides.set(move.client, side);
  }
  const fighters = [...sides.values()].map((side) => ({ ...side, values: [...side.values] })).sort((a, b) => b.times - a.times);
  return fighters.length > 1 ? { path, sides: fighters, reversals, first: moves[0].state, last: moves.at(-1).state } : null;
}

function shortValue(value) {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

export function fightCause(world, head, fight) {
  const [a, b] = fight.sides;
  const details = fight.sides.slice(0, 4).map((side) => cause(
    sentence`${side.client} set it ${numberOf(side.times, "time")} to ${listed(side.values.slice(-3))}, last by ${requestLink(side.last.request.seq)} (${momentLink(side.last.state.rev)}).`));
  const scaler = fight.path === "spec.replicas" ? autoscalerOf(world, head) : null;
  if (scaler) details.push(cause(sentence`${world.linkOf(scaler)} scales ${world.linkOf(head)}, so no other client may set spec.replicas.`));
  return cause(sentence`${a.client} and ${b.client} change ${fight.path} of ${world.linkOf(head)} back and forth: ${fight.reversals} times so far.`, details, {
    fix: scaler ? sentence`Let the other client leave spec.replicas out (server-side apply without the field, or read it before the update); or delete the autoscaler.`
      : sentence`Let one of them leave the field out: with server-side apply a client owns only the fields that it sends.` });
}

// The autoscaler whose target is the object, by name: heads don't have the target, so those of the namespace with the likely name come first.
function autoscalerOf(world, head) {
  const scalers = world.heads("horizontalpodautoscalers.autoscaling", head.ns);
  return scalers.find((one) => one.name === head.name) ?? (scalers.length === 1 ? scalers[0] : null);
}

// Objects with many writes before the moment: [{head, writes, clients}], the most written first.
export function busyObjects(world, most = 20) {
  const counts = new Map();
  const { states } = world.recording;
  for (let index = states.length - 1, left = 4000; index >= 0 && left > 0; index -= 1) {
    const state = states[index];
    if (world.moment !== null && state.rev > world.moment) continue;
    left -= 1;
    if (state.op !== "update" || BEATING.has(state.r)) continue;
    const one = counts.get(state.uid) ?? { uid: state.uid, writes: 0, clients: new Map(), first: state, last: state };
    const client = world.recording.request(state.by)?.client ?? "unknown";
    one.writes += 1;
    one.first = state;
    one.clients.set(client, (one.clients.get(client) ?? 0) + 1);
    counts.set(state.uid, one);
  }
  return [...counts.values()].filter((one) => one.writes >= 4).map((one) => ({ ...one, head: world.byUid(one.uid) })).filter((one) => one.head)
    .sort((a, b) => b.writes - a.writes).slice(0, most);
}

// Clients that write one object many times in a short time, with every write a change: [{client, busy: [{head, times, last}]}].
export function hotLoops(world, busyOnes) {
  const loops = new Map();
  for (const busy of busyOnes) {
    const [client, times] = [...busy.clients].sort((a, b) => b[1] - a[1])[0];
    const last = world.writerOf(world.history(busy.uid).findLast((state) => world.writerOf(state)?.client === client));
    const seconds = Math.abs(busy.last.at - busy.first.at);
    if (times < LOOP || seconds > LOOP_SECONDS * (times / LOOP) || !last || last.bundled) continue;
    if (!loops.has(client)) loops.set(client, []);
    loops.get(client).push({ head: busy.head, times, seconds, last });
  }
  return [...loops].map(([client, busy]) => ({ client, busy }));
}

export function loopCause(world, { client, busy }) {
  const times = busy.reduce((sum, one) => sum + one.times, 0);
  const seconds = Math.max(1, Math.round(Math.max(...busy.map((one) => one.seconds))));
  return cause(sentence`${client} wrote ${listed(busy.map((one) => world.linkOf(one.head)))} ${times} times within ${seconds} s, last by ${requestLink(busy[0].last.seq)}.`, [
    cause(sentence`A controller that writes what it watches wakes itself. Often a time, a counter or a list in another order differs in each write.`)], {
    fix: sentence`Compare before writing, and see the diffs in the object's history.` });
}

// Writes that changed nothing: [{client, r, ns, name, times, last}] from the newest requests, the most frequent first.
export function idleWrites(world) {
  const counts = new Map();
  for (const request of world.newestRequests(4000)) {
    if (!["update", "patch"].includes(request.verb) || request.status >= 300 || request.changed || request.dry || request.bundled || BEATING.has(request.r)) continue;
    const key = `${request.client} ${request.r} ${request.ns} ${request.name}`;
    const one = counts.get(key) ?? { client: request.client, r: request.r, ns: request.ns ?? "", name: request.name, times: 0, last: request };
    one.times += 1;
    counts.set(key, one);
  }
  return [...counts.values()].filter((one) => one.times >= IDLE_WRITES).sort((a, b) => b.times - a.times);
}

export function idleCause(world, { client, r, ns, name, times, last }) {
  return cause(sentence`${client} rewrote ${objectLink(r, ns, name, `${world.kindName(r)} ${name}`)} ${times} times without changing it, last by ${requestLink(last.seq)}.`, [], {
    fix: sentence`Compare the wanted with the read object before writing: an update that changes nothing still costs a request.` });
}
