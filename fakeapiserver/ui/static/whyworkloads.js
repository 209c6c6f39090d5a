// Why a deployment, replica set, stateful set, daemon set, job or cron job is not ready.

import { cause, listed, numberOf, requestLink, sentence } from "./cause.js";
import { causesOfRefusal } from "./refusals.js";
import { whyPod } from "./whypods.js";
import { conditionOf } from "./world.js";

const REPLICA_SETS = "replicasets.apps";

// Controller of kube-controller-manager that looks after a kind.
const CONTROLLERS = {
  "deployments.apps": "deployment-controller",
  "replicasets.apps": "replicaset-controller",
  "replicationcontrollers": "replicationcontroller-controller",
  "statefulsets.apps": "statefulset-controller",
  "daemonsets.apps": "daemonset-controller",
  "jobs.batch": "job-controller",
  "cronjobs.batch": "cronjob-controller",
  "horizontalpodautoscalers.autoscaling": "horizontal-pod-autoscaler-controller",
  "persistentvolumeclaims": "persistentvolume-binder-controller",
  "services": "endpointslice-controller",
  "poddisruptionbudgets.policy": "disruption-controller",
};

// How many pods a workload wants and has ready: {wanted, ready}; null if that isn't known of this kind.
export function readiness(r, object) {
  const { spec = {}, status = {} } = object;
  switch (r) {
    case "deployments.apps": return { wanted: spec.replicas ?? 1, ready: Math.min(status.availableReplicas ?? 0, status.updatedReplicas ?? 0) };
    case "replicasets.apps":
    case "replicationcontrollers": return { wanted: spec.replicas ?? 1, ready: status.readyReplicas ?? 0 };
    case "statefulsets.apps": return { wanted: spec.replicas ?? 1, ready: Math.min(status.readyReplicas ?? 0, updatedOf(object)) };
    case "daemonsets.apps": return { wanted: status.desiredNumberScheduled ?? 0, ready: Math.min(status.numberReady ?? 0, status.updatedNumberScheduled ?? 0) };
    default: return null;
  }
}

function updatedOf({ spec, status = {} }) {
  const partition = spec.updateStrategy?.rollingUpdate?.partition ?? 0;
  if (spec.updateStrategy?.type === "OnDelete" || partition > 0 || status.currentRevision === status.updateRevision) return Infinity;
  return status.updatedReplicas ?? 0;
}

function isBehind(object) {
  const { generation } = object.metadata;
  const observed = object.status?.observedGeneration;
  return generation !== undefined && observed !== undefined && observed < generation;
}

export async function whyWorkload(world, r, object) {
  const controller = controllerCause(world, r);
  const rule = WORKLOAD_RULES[r];
  const isFresh = object.status?.observedGeneration === undefined && r !== "jobs.batch" && r !== "cronjobs.batch";
  if (controller && (isBehind(object) || isFresh)) return [controller];
  const found = rule ? await rule(world, object) : [];
  if (found.length && controller) found.unshift(controller);
  return found;
}

// The cause that the controller of a kind doesn't run, or null.
export function controllerCause(world, r) {
  const name = CONTROLLERS[r];
  const mode = name ? world.mode(name) : null;
  if (mode === "off") {
    return cause(sentence`The ${name}, which looks after this kind, is off.`, [], {
      fix: sentence`Start the cluster with it: Cluster(controllers="*"), or switch it on under Levers.` });
  }
  if (mode === "step") return cause(sentence`The ${name} is in step mode: it does nothing until it is stepped.`, [], { fix: sentence`Step it under Levers, or cluster.controllers.step("${name}").` });
  return null;
}

const WORKLOAD_RULES = {
  "deployments.apps": whyDeployment,
  "replicasets.apps": whyReplicas,
  "replicationcontrollers": whyReplicas,
  "statefulsets.apps": whyStatefulSet,
  "daemonsets.apps": whyDaemonSet,
  "jobs.batch": whyJob,
  "cronjobs.batch": whyCronJob,
};

async function whyDeployment(world, deployment) {
  const { wanted, ready } = readiness("deployments.apps", deployment);
  const progressing = conditionOf(deployment, "Progressing");
  const isLate = progressing?.status === "False";
  if (ready >= wanted && !isBehind(deployment) && !isLate) return [];
  const found = [];
  if (deployment.spec.paused) found.push(cause(sentence`The rollout is paused (spec.paused).`, [], { fix: sentence`kubectl rollout resume` }));
  const sets = world.dependents(deployment.metadata.uid).filter((head) => head.r === REPLICA_SETS);
  const loaded = (await world.load(sets)).filter((set) => (set.spec.replicas ?? 0) > 0);
  for (const set of loaded) {
    const causes = await whyReplicas(world, set);
    if (causes.length) {
      found.push(cause(sentence`${world.link(REPLICA_SETS, set.metadata.namespace, set.metadata.name)} has ${set.status?.readyReplicas ?? 0} of ${
        numberOf(set.spec.replicas, "pod")} ready.`, causes));
    }
  }
  if (!sets.length && !found.length) {
    found.push(controllerCause(world, "deployments.apps") ?? cause(sentence`The deployment has no replica set yet.`));
  } else if (sets.length && !loaded.length && wanted > 0) {
    found.push(controllerCause(world, "deployments.apps") ?? cause(sentence`No replica set of the deployment has been scaled up.`));
  }
  if (isLate) {
    found.push(cause(sentence`The deployment has made no progress within ${deployment.spec.progressDeadlineSeconds ?? 600} seconds (${progressing.reason}).`, [], { quote: progressing.message }));
  }
  if (!found.length && isBehind(deployment)) found.push(behindCause(deployment));
  return found;
}

function behindCause(object) {
  return cause(sentence`The controller has seen generation ${object.status.observedGeneration}, but the newest is ${object.metadata.generation}: it has not acted on the last change of the spec.`);
}

async function whyReplicas(world, set) {
  const r = set.kind === "ReplicationController" ? "replicationcontrollers" : REPLICA_SETS;
  const wanted = set.spec.replicas ?? 1;
  if ((set.status?.readyReplicas ?? 0) >= wanted) return [];
  const found = [];
  const pods = await podsOf(world, set);
  const missing = wanted - pods.length;
  const failure = conditionOf(set, "ReplicaFailure");
  if (missing > 0) found.push(await whyNotCreated(world, r, set, missing, failure?.status === "True" ? failure.message : ""));
  found.push(...await whyPods(world, pods));
  return found.filter(Boolean);
}

async function podsOf(world, owner) {
  return world.load(world.dependents(owner.metadata.uid).filter((head) => head.r === "pods" && !head.deleting));
}

// Why the controller of a workload doesn't create pods: from the condition, the events FailedCreate, or the refused request.
async function whyNotCreated(world, r, owner, missing, failure) {
  const { namespace } = owner.metadata;
  const [event] = (await world.eventsOf(owner)).filter((one) => one.reason === "FailedCreate");
  const refused = refusedCreate(world, r, owner);
  const message = failure || event?.message || event?.note || refused?.message || "";
  const controller = controllerCause(world, r);
  if (!message) {
    if (controller) return cause(sentence`${numberOf(missing, "pod")} ${missing === 1 ? "has" : "have"} not been created.`, [controller]);
    return cause(sentence`${numberOf(missing, "pod")} ${missing === 1 ? "has" : "have"} not been created yet.`);
  }
  const causes = await causesOfRefusal(world, message, { ns: namespace, r: "pods", verb: "create" });
  const link = refused ? [" (", requestLink(refused.seq), ")"] : "";
  return cause(sentence`${numberOf(missing, "pod")} can't be created: the server refuses the ${CONTROLLERS[r]}'s requests${link}.`, causes, { quote: message });
}

// The last refused creation of a pod whose name begins with that of the owner.
function refusedCreate(world, r, owner) {
  const { name, namespace } = owner.metadata;
  for (const request of world.newestRequests(5000)) {
    if (request.r === "pods" && request.verb === "create" && request.status >= 400 && request.ns === namespace &&
      (request.message ?? "").includes(`"${name}-`)) return request;
  }
  return null;
}

// Causes of the pods that aren't ready; pods with the same cause are put together.
async function whyPods(world, pods) {
  const groups = new Map();
  for (const pod of pods) {
    if (conditionOf(pod, "Ready")?.status === "True" && !pod.metadata.deletionTimestamp) continue;
    const causes = await whyPod(world, pod);
    const key = causes.map((one) => one.text).join("\n");
    if (!groups.has(key)) groups.set(key, { pods: [], causes });
    groups.get(key).pods.push(pod);
  }
  return [...groups.values()].map(({ pods: same, causes }) => {
    const links = listed(same.map((pod) => world.link("pods", pod.metadata.namespace, pod.metadata.name)));
    const phases = [...new Set(same.map((pod) => pod.status?.phase ?? "Pending"))].join(", ");
    return cause(sentence`${links} ${same.length === 1 ? "is" : "are"} ${phases === "Running" ? "running, but not ready" : phases}.`, causes);
  });
}

async function whyStatefulSet(world, set) {
  const { wanted, ready } = readiness("statefulsets.apps", set);
  if (ready >= wanted && !isBehind(set)) return [];
  const found = [];
  const pods = (await podsOf(world, set)).sort((a, b) => ordinal(a) - ordinal(b));
  const stuck = pods.find((pod) => conditionOf(pod, "Ready")?.status !== "True");
  if (stuck && (set.spec.podManagementPolicy ?? "OrderedReady") === "OrderedReady") {
    const later = wanted - pods.length;
    found.push(cause(sentence`${world.link("pods", stuck.metadata.namespace, stuck.metadata.name)} is not ready${
      later > 0 ? `, and the ${numberOf(later, "pod")} after it ${later === 1 ? "is" : "are"} created in order (podManagementPolicy OrderedReady)` : ""}.`, await whyPod(world, stuck)));
  } else {
    if (pods.length < wanted) found.push(await whyNotCreated(world, "statefulsets.apps", set, wanted - pods.length, ""));
    found.push(...await whyPods(world, pods));
  }
  const { updateStrategy } = set.spec;
  if (set.status?.currentRevision !== set.status?.updateRevision) {
    if (updateStrategy?.type === "OnDelete") found.push(cause(sentence`The update strategy is OnDelete: pods keep the old revision until they are deleted.`));
    const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
    if (partition > 0) found.push(cause(sentence`The partition is ${partition}: pods with a lower ordinal keep the old revision.`));
  }
  if (!found.length && isBehind(set)) found.push(behindCause(set));
  return found;
}

function ordinal(pod) {
  return Number(/-(\d+)$/.exec(pod.metadata.name)?.[1] ?? 0);
}

async function whyDaemonSet(world, set) {
  const { desiredNumberScheduled: desired = 0, currentNumberScheduled: current = 0, numberReady = 0, updatedNumberScheduled: updated = 0 } = set.status ?? {};
  const nodes = world.heads("nodes").length;
  if (desired === 0) {
    if (!nodes) return [cause(sentence`There are no nodes.`, [], { fix: sentence`Start the cluster with simulated nodes: Cluster(nodes=2).` })];
    return [controllerCause(world, "daemonsets.apps") ?? cause(sentence`None of the ${numberOf(nodes, "node")} matches the pods' nodeSelector, affinity and tolerations.`)];
  }
  const found = [];
  if (current < desired) found.push(await whyNotCreated(world, "daemonsets.apps", set, desired - current, ""));
  if (numberReady < desired) found.push(...await whyPods(world, await podsOf(world, set)));
  if (updated < desired && set.spec.updateStrategy?.type === "OnDelete") found.push(cause(sentence`The update strategy is OnDelete: pods keep the old revision until they are deleted.`));
  if (!found.length && isBehind(set)) found.push(behindCause(set));
  return found;
}

async function whyJob(world, job) {
  const failed = conditionOf(job, "Failed");
  if (failed?.status === "True") {
    const pods = (await podsOf(world, job)).filter((pod) => pod.status?.phase === "Failed").slice(-3);
    const causes = (await Promise.all(pods.map(async (pod) => cause(
      sentence`${world.link("pods", pod.metadata.namespace, pod.metadata.name)} failed.`, await whyPod(world, pod)))));
    return [cause(sentence`The job has failed: ${failed.reason}.`, causes, { quote: failed.message })];
  }
  if (conditionOf(job, "Complete")?.status === "True") return [];
  if (job.spec.suspend) return [cause(sentence`The job is suspended (spec.suspend).`)];
  if (job.spec.managedBy && job.spec.managedBy !== "kubernetes.io/job-controller") {
    return [cause(sentence`The job is left to ${job.spec.managedBy} (spec.managedBy); the job-controller ignores it.`)];
  }
  const pods = await podsOf(world, job);
  if (!pods.length) return [controllerCause(world, "jobs.batch") ?? await whyNotCreated(world, "jobs.batch", job, job.spec.parallelism ?? 1, "")];
  const open = pods.filter((pod) => pod.status?.phase === "Pending");
  return whyPods(world, open);
}

async function whyCronJob(world, cronJob) {
  if (cronJob.spec.suspend) return [cause(sentence`The cron job is suspended (spec.suspend).`)];
  const controller = controllerCause(world, "cronjobs.batch");
  if (controller) return [controller];
  const jobs = await world.load(world.dependents(cronJob.metadata.uid).filter((head) => head.r === "jobs.batch"));
  const failed = jobs.filter((job) => conditionOf(job, "Failed")?.status === "True");
  if (!failed.length) return [];
  return [cause(sentence`${numberOf(failed.length, "job")} failed.`, [cause(
    sentence`${world.link("jobs.batch", failed.at(-1).metadata.namespace, failed.at(-1).metadata.name)} is the last.`, await whyJob(world, failed.at(-1)))])];
}
