// Why an object that others look after (a custom resource, mostly) is not as its spec wants it: conditions, generations, reconcilers.

import { cause, listed, momentLink, requestLink, sentence } from "./cause.js";
import { ago } from "./dom.js";
import { watchedBefore, watchersOf } from "./whydeletion.js";

// Conditions that are good when False.
const NEGATIVE = /(?:^|[a-z])(?:Fail|Failed|Failure|Error|Errors|Degraded|Stalled|Unhealthy|Unavailable|Pressure|Conflict|Invalid|Terminating|Blocked|Missing|Lost|Paused|Suspended|Disrupted|DisruptionTarget)(?:$|[A-Z])/;
// Conditions that are no judgement at all.
const NEUTRAL = /^(?:Progressing|Reconciling|Upgrading|Updating|Scaling|ScalingLimited|Creating|Deleting|Terminating|Resizing|FileSystemResizePending|PodReadyToStartContainers|NonStructuralSchema|NamesAccepted|KubernetesAPIApprovalPolicyConformant|Suspended|Complete|SuccessCriteriaMet)$/;

// "good", "bad", "unknown" or "neutral": a condition's meaning by the conventions of its type's name.
export function meaningOf(condition) {
  if (condition.status === "Unknown") return NEUTRAL.test(condition.type) ? "neutral" : "unknown";
  if (NEGATIVE.test(condition.type)) return condition.status === "True" ? "bad" : "neutral";
  if (condition.status === "True") return NEUTRAL.test(condition.type) ? "neutral" : "good";
  return NEUTRAL.test(condition.type) ? "neutral" : "bad";
}

export function badConditions(object) {
  return (object.status?.conditions ?? []).filter((one) => ["bad", "unknown"].includes(meaningOf(one)));
}

export async function whyCustom(world, r, object) {
  const head = world.head(r, object.metadata.namespace, object.metadata.name);
  const found = badConditions(object).map((one) => cause(
    sentence`The condition ${one.type} is ${one.status}${one.reason ? ` (${one.reason})` : ""}.`, [whoSaid(world, head, object)], { quote: one.message ?? "" }));
  const errors = failedReconcile(world, head);
  if (errors) found.push(errors);
  const observed = object.status?.observedGeneration;
  const isBehindSpec = observed !== undefined && observed < object.metadata.generation;
  if (isBehindSpec) {
    found.push(cause(sentence`The spec is at generation ${object.metadata.generation}, but status.observedGeneration is ${observed}: its controller has not acted on the last change.`,
      reconcilers(world, r, head)));
  } else if (object.spec && !object.status && lacksStatus(world, r, object)) {
    found.push(cause(sentence`It has no status: no controller has looked at it yet, or none reports.`, reconcilers(world, r, head)));
  }
  if (found.length) found.push(...refusedWork(world, r, head));
  return found;
}

// Custom resources whose kind has a status at all: another object has one, or the client that reconciles it isn't there.
function lacksStatus(world, r, object) {
  return (object.metadata.managedFields ?? []).every((entry) => entry.subresource !== "status") && world.isCustom(r);
}

function whoSaid(world, head, object) {
  const entry = (object.metadata.managedFields ?? []).filter((one) => one.subresource === "status" || one.fieldsV1?.["f:status"]).at(-1);
  const last = head ? world.history(head.uid).findLast((state) => world.writerOf(state)?.sub === "status") : null;
  const request = world.writerOf(last);
  if (request) return cause(sentence`${request.client} wrote the status last (${requestLink(request.seq)}, ${momentLink(last.rev)}).`);
  return entry ? cause(sentence`${entry.manager} wrote the status.`) : null;
}

function reconcilers(world, r, head) {
  const watchers = watchersOf(world, r);
  const { now, before } = watchers;
  const kind = world.recording.kind(r).resource;
  const causes = [];
  if (now.length) causes.push(cause(sentence`${listed(now)} ${now.length === 1 ? "watches" : "watch"} ${kind}.`));
  if (!now.length) {
    causes.push(cause(before.length ? watchedBefore(watchers, kind)
      : sentence`No client watches ${kind}: the controller of this kind is not running, or watches something else.`, [], {
      fix: sentence`Start the controller (operator) of ${kind}.` }));
  }
  const writers = head ? [...new Set(world.history(head.uid).map((state) => world.writerOf(state)?.client).filter(Boolean))] : [];
  if (writers.length) causes.push(cause(sentence`It was written by ${listed(writers)} only.`));
  return causes;
}

// The last reconcile of an object, if it ended with an error.
function failedReconcile(world, head) {
  if (!head) return null;
  const key = head.ns ? `${head.ns}/${head.name}` : head.name;
  const { reconciles } = world.recording;
  for (let index = reconciles.length - 1; index >= Math.max(0, reconciles.length - 20000); index -= 1) {
    const one = reconciles[index];
    if (one.key !== key || !world.isPast(one) || !concerns(world, one, head)) continue;
    if (!one.error) return null;
    const again = one.again ? ` It is tried again after ${ago(one.again)}.` : "";
    const failed = world.recording.effectsOf(one).find((request) => request.status >= 400);
    return cause(sentence`The last reconcile of ${one.controller} failed${failed ? [" (", requestLink(failed.seq), ")"] : ""}.${again}`, [], { quote: one.error });
  }
  return null;
}

// Whether a controller reconciles this kind: its name has the kind's, or its requests or causes concern the object.
function concerns(world, reconcile, head) {
  const kind = world.kindName(head.r).toLowerCase();
  return reconcile.controller.toLowerCase().replaceAll("-", "").includes(kind) ||
    (reconcile.causes ?? []).some((rev) => world.recording.state(rev)?.uid === head.uid);
}

// Requests by those who write this object's status that were refused, and have not succeeded since.
function refusedWork(world, r, head) {
  if (!head) return [];
  const clients = new Set([...watchersOf(world, r).now, ...world.history(head.uid).filter((state) => world.writerOf(state)?.sub === "status")
    .map((state) => world.writerOf(state).client)]);
  const found = new Map();
  const since = new Set();
  for (const request of world.newestRequests(3000)) {
    if (!clients.has(request.client) || ["get", "list", "watch"].includes(request.verb) && request.status !== 403) continue;
    const key = `${request.verb} ${request.r} ${request.ns} ${request.name}`;
    if (request.status < 400) since.add(key);
    else if (!since.has(key) && request.status !== 409 && request.status !== 404) found.set(`${request.verb} ${request.r}`, found.get(`${request.verb} ${request.r}`) ?? request);
  }
  return [...found.values()].slice(0, 3).map((request) => cause(
    sentence`${request.client} was refused to ${request.verb} ${request.r} ${request.name ?? ""}: ${request.status} ${request.reason} (${requestLink(request.seq)}).`, [], { quote: request.message ?? "" }));
}
