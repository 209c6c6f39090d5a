// What looks wrong at a moment, without being asked: found from the cells and the heads first, so that 10,000 objects need few states.

import { cause, objectLink, sentence } from "./cause.js";
import { badConditions } from "./whycustom.js";
import { refusedCause, refusedWrites } from "./whyrequest.js";
import { busyObjects, fightCause, fightsOver, hotLoops, idleCause, idleWrites, loopCause } from "./writers.js";
import { whyObject } from "./whyobject.js";
import { World } from "./world.js";

const JUDGED_WORKLOADS = ["deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "replicationcontrollers", "jobs.batch"];
const OTHERS = ["persistentvolumeclaims", "horizontalpodautoscalers.autoscaling", "services", "ingresses.networking.k8s.io", "nodes"];
// Kinds whose conditions are of no interest here, or are judged by a rule above.
const QUIET = new Set([...JUDGED_WORKLOADS, ...OTHERS, "pods", "events", "events.events.k8s.io", "leases.coordination.k8s.io", "namespaces", "cronjobs.batch",
  "endpoints", "endpointslices.discovery.k8s.io", "configmaps", "secrets", "serviceaccounts", "poddisruptionbudgets.policy",
  "controllerrevisions.apps", "customresourcedefinitions.apiextensions.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io",
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
  "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"]);
const GOOD_PHASES = new Set(["Running", "Succeeded", "Completed", "Bound"]);
// How many objects of a kind are looked at in full, and how many problems of a kind are explained.
const MOST_LOADED = 1000;
const MOST_EXPLAINED = 12;

// Problems [{severity: "bad" | "note", kind, title: parts, subject: {r, ns, name} or null, cause}], the worst first.
export async function problems(recording, source, moment = null) {
  const world = new World(recording, source, moment);
  const found = [];
  const explained = new Set(); // uids whose dependents need no words of their own
  await addFights(world, found, explained);
  await addDeletions(world, found, explained);
  for (const r of JUDGED_WORKLOADS) await addKind(world, r, found, explained, await suspects(world, r));
  for (const r of customKinds(world)) await addKind(world, r, found, explained, world.heads(r).slice(0, MOST_LOADED));
  await addKind(world, "pods", found, explained, await suspects(world, "pods"));
  for (const r of OTHERS) await addKind(world, r, found, explained, world.heads(r).slice(0, MOST_LOADED));
  await addRequests(world, found);
  addReconciles(world, found, explained);
  return found.sort((a, b) => RANK[a.severity] - RANK[b.severity]);
}

const RANK = { bad: 0, note: 1 };

function customKinds(world) {
  return world.kinds.map((kind) => kind.r).filter((r) => !QUIET.has(r) && world.heads(r).length);
}

// Pods and workloads that by their cells aren't complete: "1/3" under Ready, a phase that isn't Running or Completed.
async function suspects(world, r) {
  const heads = world.heads(r).filter((head) => !head.deleting);
  if (judgedGeneration !== world.recording.generation || judged.size > MOST_JUDGED) judged.clear();
  judgedGeneration = world.recording.generation;
  const unknown = heads.filter((head) => !judged.has(head.rev));
  if (unknown.length) {
    const states = await world.source.states(unknown.map((head) => head.rev), { objects: false, cells: true });
    const names = world.source.columns(r).map((column) => (column.name ?? column).toLowerCase());
    for (const [revision, state] of states) judged.set(revision, isSuspect(names, state.cells ?? []));
  }
  return heads.filter((head) => judged.get(head.rev) !== false);
}

// Revisions of one server; another one that the page turns to begins again.
const MOST_JUDGED = 50000;
const judged = new Map(); // revision -> whether the object looks incomplete
let judgedGeneration = 0;

function isSuspect(names, cells) {
  const cell = (name) => cells[names.indexOf(name)];
  const parts = /^(\d+)\/(\d+)$/.exec(String(cell("ready") ?? cell("completions") ?? ""));
  const status = cell("status");
  if (status !== undefined && (status === "Completed" || status === "Succeeded")) return false;
  if (parts && Number(parts[1]) < Number(parts[2])) return true;
  if (cell("desired") !== undefined) return Number(cell("desired")) !== Number(cell("ready")) || Number(cell("desired")) === 0;
  if (cell("up-to-date") !== undefined && parts) return Number(cell("up-to-date")) < Number(parts[2]);
  return status !== undefined ? !GOOD_PHASES.has(status) : !parts;
}

async function addKind(world, r, found, explained, heads) {
  let left = MOST_EXPLAINED;
  let unexplained = 0;
  const candidates = heads.filter((head) => !head.deleting && !isCovered(world, head, explained));
  for (const object of await world.load(candidates.slice(0, MOST_LOADED))) {
    if (!looksWrong(world, r, object)) continue;
    if (left === 0) {
      unexplained += 1;
      continue;
    }
    const causes = await causesOf(world, r, object);
    if (!causes.length) continue;
    left -= 1;
    const { name, namespace, uid } = object.metadata;
    explained.add(uid);
    found.push({ severity: severityOf(r), kind: r, subject: { r, ns: namespace ?? "", name }, title: titleOf(world, r, object), causes });
  }
  if (unexplained) {
    found.push({ severity: "note", kind: r, subject: null, title: sentence`${unexplained} more ${world.recording.kind(r).resource} look like these.`, causes: [] });
  }
}

// An object that the rules can't read must not hide what is wrong with others.
async function causesOf(world, r, object) {
  try {
    return await whyObject(world, r, object);
  } catch (error) {
    return [cause(sentence`The page's rules can't read this object.`, [], { quote: error.message })];
  }
}

function severityOf(r) {
  return r === "services" || r === "ingresses.networking.k8s.io" ? "note" : "bad";
}

// Objects that nothing is wrong with at first sight; for the others the rules decide.
function looksWrong(world, r, object) {
  if (JUDGED_WORKLOADS.includes(r) || OTHERS.includes(r) || r === "pods") return true;
  const observed = object.status?.observedGeneration;
  return badConditions(object).length > 0 || (observed !== undefined && observed < object.metadata.generation) ||
    (world.isCustom(r) && object.spec !== undefined && object.status === undefined) || GOOD_PHASES.has(object.status?.phase) === false && object.status?.phase === "Failed";
}

// Whether a problem of an owner explains this object already.
function isCovered(world, head, explained) {
  const seen = new Set();
  const open = [...(head.owners ?? [])];
  while (open.length) {
    const uid = open.pop();
    if (explained.has(uid)) return true;
    if (seen.has(uid)) continue;
    seen.add(uid);
    open.push(...(world.byUid(uid)?.owners ?? []));
  }
  return false;
}

const TITLES = {
  pods: (world, pod, link) => sentence`${link} is ${pod.status?.phase === "Running" ? "not ready" : (pod.status?.phase ?? "Pending").toLowerCase()}.`,
  services: (world, service, link) => sentence`${link} has no endpoints.`,
  persistentvolumeclaims: (world, claim, link) => sentence`${link} is ${(claim.status?.phase ?? "Pending").toLowerCase()}.`,
  "horizontalpodautoscalers.autoscaling": (world, scaler, link) => sentence`${link} doesn't scale.`,
  "jobs.batch": (world, job, link) => sentence`${link} does not complete.`,
  "ingresses.networking.k8s.io": (world, ingress, link) => sentence`${link} leads nowhere.`,
};

function titleOf(world, r, object) {
  const link = nameLink(world, r, object.metadata.namespace, object.metadata.name);
  return TITLES[r]?.(world, object, link) ?? sentence`${link} is not ready.`;
}

function nameLink(world, r, ns, name) {
  return objectLink(r, ns, name, `${world.kindName(r)} ${ns ? `${ns}/` : ""}${name}`);
}

const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";

// Objects before what is deleted with them: the rules of the former explain the latter. Within that, the newest first.
async function addDeletions(world, found, explained) {
  const deleting = [...world.recording.objects(world.moment, (head) => head.deleting)].reverse();
  const uids = new Set(deleting.map((head) => head.uid));
  const rank = ({ r, owners }) => (r === "namespaces" ? 0 : r === DEFINITIONS ? 1 : (owners ?? []).some((uid) => uids.has(uid)) ? 3 : 2);
  const heads = deleting.sort((a, b) => rank(a) - rank(b));
  const covered = new Set(heads.filter((head) => head.r === "namespaces").map((head) => head.name));
  const undefinedKinds = new Set(heads.filter((head) => head.r === DEFINITIONS).map((head) => head.name));
  let left = MOST_EXPLAINED;
  for (const head of heads) {
    if (left === 0) break;
    if ((head.ns && covered.has(head.ns)) || undefinedKinds.has(head.r) || isCovered(world, head, explained)) continue;
    const [object] = await world.load([head]);
    if (!object) continue;
    left -= 1;
    const causes = await causesOf(world, head.r, object);
    explained.add(head.uid);
    found.push({ severity: "bad", kind: head.r, subject: head, title: sentence`${nameLink(world, head.r, head.ns, head.name)} is being deleted, but still there.`, causes });
  }
}

async function addFights(world, found) {
  const busyOnes = busyObjects(world);
  const fought = new Set();
  for (const busy of busyOnes) {
    const fights = await fightsOver(world, busy.head);
    const subject = { r: busy.head.r, ns: busy.head.ns, name: busy.head.name };
    for (const fight of fights.slice(0, 2)) {
      const why = fightCause(world, busy.head, fight);
      found.push({ severity: "bad", kind: "fight", subject, title: why.parts, causes: why.because, fix: why.fix });
    }
    if (fights.length) fought.add(busy.uid);
  }
  for (const loop of hotLoops(world, busyOnes.filter((busy) => !fought.has(busy.uid)))) {
    const why = loopCause(world, loop);
    found.push({ severity: "note", kind: "loop", subject: loop.busy[0].head, title: why.parts, causes: why.because, fix: why.fix });
  }
  for (const idle of idleWrites(world).slice(0, 5)) {
    const why = idleCause(world, idle);
    found.push({ severity: "note", kind: "idle", subject: { r: idle.r, ns: idle.ns, name: idle.name }, title: why.parts, causes: why.because, fix: why.fix });
  }
}

async function addRequests(world, found) {
  for (const refused of refusedWrites(world).slice(0, MOST_EXPLAINED)) {
    const why = await refusedCause(world, refused);
    const { last } = refused;
    found.push({ severity: refused.status === 409 ? "note" : "bad", kind: "request", subject: null, request: last.seq, title: why.parts, causes: why.because });
  }
}

// Keys whose last reconcile failed and that nothing above explains.
function addReconciles(world, found, explained) {
  const seen = new Set();
  const named = new Set(found.filter((one) => one.subject).map(({ subject }) => (subject.ns ? `${subject.ns}/${subject.name}` : subject.name)));
  for (const uid of explained) for (const head of world.dependents(uid)) named.add(head.ns ? `${head.ns}/${head.name}` : head.name);
  const { reconciles } = world.recording;
  for (let index = reconciles.length - 1; index >= Math.max(0, reconciles.length - 20000); index -= 1) {
    const one = reconciles[index];
    const key = `${one.controller} ${one.key}`;
    if (!world.isPast(one) || seen.has(key)) continue;
    seen.add(key);
    if (!one.error || named.has(one.key)) continue;
    named.add(one.key);
    const failed = world.recording.effectsOf(one).find((request) => request.status >= 400);
    found.push({ severity: "note", kind: "reconcile", subject: null, request: failed?.seq, title: sentence`The last reconcile of ${one.key} by ${one.controller} failed.`,
      causes: [cause(sentence`It ended with an error.`, [], { quote: one.error })] });
  }
}
