// Why one object is not as its spec wants it: chooses the rules of its kind.

import { whyAutoscaler, whyDisruptionBudget, whyIngress, whyService } from "./whynetwork.js";
import { whyCustom } from "./whycustom.js";
import { deletionAsked, whyNotDeleted, whyOrphaned } from "./whydeletion.js";
import { whyPod } from "./whypods.js";
import { whyClaim } from "./whystorage.js";
import { whyWorkload } from "./whyworkloads.js";
import { fightCause, fightsOver } from "./writers.js";
import { cause, listed, sentence } from "./cause.js";

const RULES_OF_KINDS = {
  pods: whyPod,
  services: whyService,
  persistentvolumeclaims: whyClaim,
  "ingresses.networking.k8s.io": whyIngress,
  "horizontalpodautoscalers.autoscaling": whyAutoscaler,
  "poddisruptionbudgets.policy": whyDisruptionBudget,
  nodes: whyNodeItself,
};

const BY_WORKLOAD = new Set(["deployments.apps", "replicasets.apps", "replicationcontrollers", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch"]);

// The causes, the most probable first; none if nothing is wrong.
export async function whyObject(world, r, object) {
  if (object.metadata.deletionTimestamp) {
    const head = world.head(r, object.metadata.namespace, object.metadata.name);
    return [...await whyNotDeleted(world, r, object), head ? deletionAsked(world, head) : null].filter(Boolean);
  }
  if (BY_WORKLOAD.has(r)) return whyWorkload(world, r, object);
  if (RULES_OF_KINDS[r]) return RULES_OF_KINDS[r](world, object);
  const found = await whyCustom(world, r, object);
  return found.length ? [...found, ...await whyDependents(world, object)] : found;
}

// Dependents that something is wrong with, as causes of the owner's state.
async function whyDependents(world, object) {
  const heads = world.dependents(object.metadata.uid).slice(0, 30);
  const found = [];
  for (const [index, dependent] of (await world.load(heads)).entries()) {
    const { r, ns, name } = heads[index];
    if (found.length === 3 || (!BY_WORKLOAD.has(r) && !RULES_OF_KINDS[r])) continue;
    const causes = await whyObject(world, r, dependent);
    if (causes.length) found.push(cause(sentence`${world.link(r, ns, name)}, which belongs to it, is not ready.`, causes));
  }
  return found;
}

// What is wrong with who writes the object, and with its owners.
export async function whyWriters(world, head) {
  const fights = await fightsOver(world, head);
  return [...fights.map((fight) => fightCause(world, head, fight)), whyOrphaned(world, head)].filter(Boolean);
}

function whyNodeItself(world, node) {
  const found = [];
  const bad = (node.status?.conditions ?? []).filter((one) => (one.type === "Ready" ? one.status !== "True" : one.status === "True" && /Pressure|Unavailable/.test(one.type)));
  for (const one of bad) found.push(cause(sentence`The condition ${one.type} is ${one.status}${one.reason ? ` (${one.reason})` : ""}.`, [], { quote: one.message ?? "" }));
  const taints = (node.spec?.taints ?? []).map((taint) => `${taint.key}:${taint.effect}`);
  if (found.length && taints.length) found.push(cause(sentence`It has the taints ${listed(taints)}.`));
  return found;
}
