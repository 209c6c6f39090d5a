// Why a pod is pending, not ready or failing.

import { cause, listed, numberOf, objectLink, sentence } from "./cause.js";
import { whyClaim } from "./whystorage.js";
import { quantity, conditionOf } from "./world.js";

// The causes why a pod doesn't run or isn't ready, the most probable first; none if it is as it should be.
export async function whyPod(world, pod) {
  const { phase } = pod.status ?? {};
  if (phase === "Succeeded") return [];
  if (phase === "Failed") return [await failedPod(world, pod)];
  if (!pod.spec.nodeName) return whyUnscheduled(world, pod);
  const missing = await missingReferences(world, pod);
  const containers = await whyContainers(world, pod);
  const found = [...missing, ...containers, ...whyNode(world, pod, await nodeOf(world, pod)), ...whyGates(pod)];
  if (found.length) return found;
  if (phase === "Running" && conditionOf(pod, "Ready")?.status === "True") return [];
  return [await whyNotStarted(world, pod)];
}

// ---------------------------------------------------------------- scheduling

async function whyUnscheduled(world, pod) {
  const condition = conditionOf(pod, "PodScheduled");
  const gates = pod.spec.schedulingGates ?? [];
  if (gates.length) {
    return [cause(sentence`Scheduling gates hold the pod back: ${listed(gates.map((gate) => gate.name))}.`, [], {
      fix: sentence`Who set them removes them from spec.schedulingGates when the pod may be scheduled.`,
    })];
  }
  const scheduler = pod.spec.schedulerName ?? "default-scheduler";
  if (!world.heads("nodes").length) {
    return [cause(sentence`There are no nodes, and without them nothing schedules and runs pods.`, [], {
      fix: sentence`Start the cluster with simulated nodes: Cluster(nodes=2), or serve --nodes=2.`,
    })];
  }
  if (scheduler !== "default-scheduler") {
    return [cause(sentence`The pod asks for the scheduler ${scheduler}, which has not chosen a node. The simulated scheduler is default-scheduler.`)];
  }
  const mode = world.mode("kube-scheduler");
  const message = condition?.message ?? "";
  const reasons = schedulingReasons(message);
  if (!reasons.length) {
    if (message) return [cause(sentence`The scheduler found no node.`, [], { quote: message })];
    return [cause(sentence`The scheduler has not looked at the pod yet${mode === "step" ? ": it is in step mode" : mode === "off" ? ": it is off" : ""}.`)];
  }
  const causes = await Promise.all(reasons.map((reason) => whyNoNode(world, pod, reason)));
  return [cause(sentence`The scheduler found no node for the pod.`, causes, { quote: message })];
}

// "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: …" -> [{count, text}]
function schedulingReasons(message) {
  const match = /^0\/\d+ nodes are available: (.*?)(?:\. (?:no new claims|preemption:|not found)|\.?$)/s.exec(message);
  if (!match) return [];
  return match[1].split(/, (?=\d+ )/).map((part) => {
    const [, count, text] = /^(?:(\d+) )?(.*)$/s.exec(part.replace(/\.$/, ""));
    return { count: count ? Number(count) : null, text };
  });
}

async function whyNoNode(world, pod, { count, text }) {
  const lead = count === null ? "" : `${numberOf(count, "node")}: `;
  const short = /^Insufficient (.+)$/.exec(text);
  if (short) return whyInsufficient(world, pod, short[1], lead);
  if (/taint/.test(text)) return whyTainted(world, pod, lead, text);
  if (/node affinity\/selector/.test(text)) return whyNotSelected(world, pod, lead);
  if (/unbound immediate PersistentVolumeClaims|persistentvolumeclaim/i.test(text)) return whyUnbound(world, pod, text);
  if (/were unschedulable/.test(text)) return whyCordoned(world, lead);
  if (/Too many pods/.test(text)) return whyInsufficient(world, pod, "pods", lead);
  if (/affinity/.test(text)) return cause(sentence`${lead}the rules of spec.affinity don't allow the pods that run there.`, [], { quote: text });
  if (/topology spread/.test(text)) {
    return cause(sentence`${lead}one more pod there would break spec.topologySpreadConstraints (maxSkew).`, [], { quote: text });
  }
  if (/free ports/.test(text)) return cause(sentence`${lead}another pod has taken the hostPort that this one asks for.`, [], { quote: text });
  if (/volume node affinity|zone/.test(text)) return cause(sentence`${lead}the volume can only be used on other nodes.`, [], { quote: text });
  return cause(sentence`${lead}${text}.`);
}

function requestOf(pod, resource) {
  if (resource === "pods") return 1;
  const of = (containers) => (containers ?? []).map((one) => quantity(one.resources?.requests?.[resource] ?? 0) || 0);
  const sum = of(pod.spec.containers).reduce((a, b) => a + b, 0);
  return Math.max(sum, ...of(pod.spec.initContainers)) + (quantity(pod.spec.overhead?.[resource] ?? 0) || 0);
}

function amount(resource, value) {
  if (resource === "memory" || resource.endsWith("storage")) {
    for (const [unit, size] of [["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]]) if (value >= size) return `${Number((value / size).toPrecision(4))}${unit}`;
  }
  return value < 1 && value > 0 ? `${Math.round(value * 1000)}m` : String(Number(value.toPrecision(4)));
}

async function whyInsufficient(world, pod, resource, lead) {
  const nodes = (await world.all("nodes")).filter((node) => !node.spec?.unschedulable);
  const running = (await world.all("pods")).filter((one) => one.spec.nodeName && !["Succeeded", "Failed"].includes(one.status?.phase));
  const asked = requestOf(pod, resource);
  const sizes = nodes.map((node) => {
    const all = quantity(node.status?.allocatable?.[resource] ?? 0) || 0;
    const used = running.filter((one) => one.spec.nodeName === node.metadata.name).reduce((sum, one) => sum + requestOf(one, resource), 0);
    return { node, all, used };
  });
  const largest = Math.max(0, ...sizes.map(({ all }) => all));
  const details = sizes.sort((a, b) => (b.all - b.used) - (a.all - a.used)).slice(0, 3).map(({ node, all, used }) =>
    cause(sentence`${objectLink("nodes", "", node.metadata.name)} has ${amount(resource, all)}, of which ${amount(resource, used)} is requested by other pods.`));
  return asked > largest
    ? cause(sentence`${lead}the pod requests ${amount(resource, asked)} of ${resource}, more than any node has (${amount(resource, largest)}).`, details, {
      fix: sentence`Lower resources.requests.${resource}, or add a larger node.` })
    : cause(sentence`${lead}too little ${resource} is left for the ${amount(resource, asked)} that the pod requests.`, details, {
      fix: sentence`Lower the requests, delete other pods, or add a node.` });
}

async function whyTainted(world, pod, lead) {
  const tolerated = (taint) => (pod.spec.tolerations ?? []).some((one) => (!one.key || one.key === taint.key) &&
    (one.operator === "Exists" || (one.value ?? "") === (taint.value ?? "")) && (!one.effect || one.effect === taint.effect));
  const details = (await world.all("nodes")).flatMap((node) => (node.spec?.taints ?? [])
    .filter((taint) => taint.effect !== "PreferNoSchedule" && !tolerated(taint))
    .map((taint) => cause(sentence`${objectLink("nodes", "", node.metadata.name)} has the taint ${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}.`,
      taint.key.startsWith("node.kubernetes.io/") ? [cause(sentence`Kubernetes sets this taint by the node's state: the node is ${taint.key.split("/")[1]}.`)] : [])));
  return cause(sentence`${lead}the pod doesn't tolerate a taint.`, details.slice(0, 5), {
    fix: sentence`Add a toleration to the pod, or remove the taint.`,
  });
}

async function whyNotSelected(world, pod, lead) {
  const nodes = await world.all("nodes");
  const details = Object.entries(pod.spec.nodeSelector ?? {}).map(([key, value]) => {
    const values = [...new Set(nodes.map((node) => node.metadata.labels?.[key]).filter((one) => one !== undefined))];
    return cause(sentence`The pod's nodeSelector asks for the label ${key}=${value}; ${values.length
      ? `the nodes have ${listed(values.map((one) => `${key}=${one}`)).join("")}` : `no node has the label ${key}`}.`);
  });
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const term of terms) {
    for (const one of term.matchExpressions ?? []) {
      details.push(cause(sentence`The pod's node affinity requires ${one.key} ${one.operator}${one.values ? ` (${one.values.join(", ")})` : ""}.`));
    }
  }
  return cause(sentence`${lead}the node's labels don't match what the pod selects.`, details, {
    fix: sentence`Label a node, or change the pod's nodeSelector or affinity.`,
  });
}

async function whyCordoned(world, lead) {
  const nodes = (await world.all("nodes")).filter((node) => node.spec?.unschedulable).map((node) => objectLink("nodes", "", node.metadata.name));
  return cause(sentence`${lead}cordoned (spec.unschedulable): ${listed(nodes)}.`, [], { fix: sentence`kubectl uncordon the node.` });
}

function claimNames(pod) {
  return (pod.spec.volumes ?? []).map((volume) => volume.persistentVolumeClaim?.claimName ??
    (volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : null)).filter(Boolean);
}

async function whyUnbound(world, pod, text) {
  const { namespace } = pod.metadata;
  const causes = await Promise.all(claimNames(pod).map(async (name) => {
    const claim = await world.object("persistentvolumeclaims", namespace, name);
    if (!claim) return cause(sentence`PersistentVolumeClaim ${name} does not exist in ${namespace}.`, [], { fix: sentence`Create the claim.` });
    if (claim.status?.phase === "Bound") return null;
    return cause(sentence`${world.link("persistentvolumeclaims", namespace, name)} is not bound to a volume.`, await whyClaim(world, claim));
  }));
  return cause(sentence`The pod waits for its volumes.`, causes, { quote: text });
}

// ---------------------------------------------------------------- on the node

async function nodeOf(world, pod) {
  return world.object("nodes", "", pod.spec.nodeName);
}

function whyNode(world, pod, node) {
  if (!node) return [cause(sentence`The pod is bound to node ${pod.spec.nodeName}, which does not exist.`)];
  const ready = conditionOf(node, "Ready");
  if (ready && ready.status !== "True") {
    return [cause(sentence`${world.link("nodes", "", node.metadata.name)} is not ready${ready.reason ? ` (${ready.reason})` : ""}: no kubelet looks after the pod.`, [], {
      quote: ready.message ?? "", fix: sentence`Start the node again.` })];
  }
  return [];
}

// Config maps, secrets and claims that the pod needs and that don't exist.
async function missingReferences(world, pod) {
  const { namespace } = pod.metadata;
  const wanted = new Map();
  const want = (r, name, by, optional) => {
    if (name && !optional && !world.has(r, namespace, name)) wanted.set(`${r}/${name}`, { r, name, by });
  };
  for (const container of [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]) {
    for (const { valueFrom, name } of container.env ?? []) {
      const by = `the variable ${name} of container ${container.name}`;
      want("configmaps", valueFrom?.configMapKeyRef?.name, by, valueFrom?.configMapKeyRef?.optional);
      want("secrets", valueFrom?.secretKeyRef?.name, by, valueFrom?.secretKeyRef?.optional);
    }
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      want("configmaps", configMapRef?.name, `envFrom of container ${container.name}`, configMapRef?.optional);
      want("secrets", secretRef?.name, `envFrom of container ${container.name}`, secretRef?.optional);
    }
  }
  for (const volume of pod.spec.volumes ?? []) {
    want("configmaps", volume.configMap?.name, `volume ${volume.name}`, volume.configMap?.optional);
    want("secrets", volume.secret?.secretName, `volume ${volume.name}`, volume.secret?.optional);
    want("persistentvolumeclaims", volume.persistentVolumeClaim?.claimName, `volume ${volume.name}`, false);
  }
  if (isReady(pod)) return [];
  return [...wanted.values()].map(({ r, name, by }) => cause(
    sentence`${world.kindName(r)} ${name}, which ${by} needs, does not exist in ${namespace}.`, [], { fix: sentence`Create it, or mark the reference as optional.` }));
}

function isReady(pod) {
  return conditionOf(pod, "Ready")?.status === "True";
}

const WAITING_REASONS = {
  __proto__: null, // a reason is any text
  ErrImagePull: "the image can't be pulled",
  ImagePullBackOff: "the image can't be pulled; the kubelet waits before the next attempt",
  InvalidImageName: "the image's name is invalid",
  ErrImageNeverPull: "the image isn't on the node, and imagePullPolicy is Never",
  CreateContainerConfigError: "its configuration is incomplete",
  CreateContainerError: "it can't be created",
  RunContainerError: "it can't be started",
  CrashLoopBackOff: "it ends again and again; the kubelet waits before the next start",
};

async function whyContainers(world, pod) {
  if (isReady(pod)) return [];
  const statuses = [
    ...(pod.status?.initContainerStatuses ?? []).map((status) => ({ status, word: "Init container" })),
    ...(pod.status?.containerStatuses ?? []).map((status) => ({ status, word: "Container" })),
  ];
  const isInitialized = conditionOf(pod, "Initialized")?.status === "True";
  const events = statuses.length ? await world.eventsOf(pod) : [];
  return statuses.map(({ status, word }) => {
    if (word === "Container" && !isInitialized && (pod.spec.initContainers ?? []).length) return null;
    return whyContainer(pod, status, word, events);
  }).filter(Boolean);
}

function whyContainer(pod, status, word, events) {
  const { waiting, terminated, running } = status.state ?? {};
  const spec = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])].find((one) => one.name === status.name);
  const last = status.lastState?.terminated;
  if (waiting && WAITING_REASONS[waiting.reason]) {
    return cause(sentence`${word} ${status.name} (image ${spec?.image ?? status.image}) waits, because ${WAITING_REASONS[waiting.reason]} (${waiting.reason}).`,
      [last ? ended(last, status) : null], { quote: waiting.message ?? "" });
  }
  if (waiting && waiting.reason !== "PodInitializing" && waiting.reason !== "ContainerCreating") {
    return cause(sentence`${word} ${status.name} waits: ${waiting.reason ?? "no reason is given"}.`, [], { quote: waiting.message ?? "" });
  }
  if (terminated && (terminated.exitCode !== 0 || word === "Container")) return cause(sentence`${word} ${status.name} is over.`, [ended(terminated, status)]);
  if (word === "Init container" && running) return cause(sentence`Init container ${status.name} is still running; the others wait for it.`);
  if (running && !status.ready && word === "Container") {
    const probe = events.find((event) => event.reason === "Unhealthy" && /readiness/i.test(event.message ?? event.note ?? ""));
    const has = spec?.readinessProbe ? "its readinessProbe doesn't succeed" : "it isn't reported as ready";
    return cause(sentence`Container ${status.name} runs, but ${has}.`, [], { quote: probe?.message ?? probe?.note ?? "" });
  }
  return null;
}

function ended(terminated, status) {
  const times = status.restartCount ? ` It was started again ${numberOf(status.restartCount, "time")}.` : "";
  return cause(sentence`It ended with exit code ${terminated.exitCode}${terminated.reason ? ` (${terminated.reason})` : ""}.${times}`, [], {
    quote: terminated.message ?? "" });
}

function whyGates(pod) {
  return (pod.spec.readinessGates ?? []).filter((gate) => conditionOf(pod, gate.conditionType)?.status !== "True").map((gate) =>
    cause(sentence`The readiness gate ${gate.conditionType} is not True: who looks after it has not set this condition in the pod's status.`));
}

async function whyNotStarted(world, pod) {
  const [event] = (await world.eventsOf(pod)).filter((one) => one.type === "Warning");
  return cause(sentence`The kubelet of ${world.link("nodes", "", pod.spec.nodeName)} has not reported the pod's containers as ready yet.`, [], {
    quote: event ? `${event.reason}: ${event.message ?? event.note}` : "" });
}

async function failedPod(world, pod) {
  const { reason, message } = pod.status;
  const over = (pod.status.containerStatuses ?? []).filter((one) => one.state?.terminated?.exitCode);
  return cause(sentence`The pod has failed${reason ? ` (${reason})` : ""}.`,
    over.map((one) => cause(sentence`Container ${one.name} ended with exit code ${one.state.terminated.exitCode}.`)), { quote: message ?? "" });
}
