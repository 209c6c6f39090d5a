// Why a service has no endpoints, an ingress doesn't lead anywhere, an autoscaler doesn't scale.

import { cause, listed, numberOf, objectLink, sentence } from "./cause.js";
import { matchesMap } from "./selectors.js";
import { whyPod } from "./whypods.js";
import { controllerCause } from "./whyworkloads.js";
import { conditionOf } from "./world.js";

const SLICES = "endpointslices.discovery.k8s.io";

export async function whyService(world, service) {
  const { name, namespace } = service.metadata;
  const { selector, type, ports = [] } = service.spec;
  if (type === "ExternalName") return [];
  const found = [];
  if (!selector || !Object.keys(selector).length) return [];
  const slices = (await world.all(SLICES, namespace)).filter((slice) => slice.metadata.labels?.["kubernetes.io/service-name"] === name);
  const endpoints = slices.flatMap((slice) => slice.endpoints ?? []);
  if (endpoints.some((endpoint) => endpoint.conditions?.ready !== false)) return type === "LoadBalancer" ? whyNoBalancer(service) : [];
  const heads = world.heads("pods", namespace);
  const matching = heads.filter((head) => matchesMap(selector, head.labels));
  const text = Object.entries(selector).map(([key, value]) => `${key}=${value}`).join(",");
  if (!matching.length) {
    found.push(cause(sentence`No pod in ${namespace} has the labels of the service's selector: ${text}.`, [nearMiss(world, selector, heads)], {
      fix: sentence`Correct spec.selector of the service or the labels of the pods.` }));
    return found;
  }
  const pods = await world.load(matching.slice(0, 50));
  const waiting = pods.filter((pod) => conditionOf(pod, "Ready")?.status !== "True");
  if (waiting.length) {
    const causes = await Promise.all(waiting.slice(0, 3).map(async (pod) => cause(
      sentence`${world.link("pods", namespace, pod.metadata.name)} is not ready.`, await whyPod(world, pod))));
    return [cause(sentence`${numberOf(matching.length, "pod")} ${matching.length === 1 ? "matches" : "match"} the selector ${text}, but none is ready.`, causes)];
  }
  const named = ports.filter((port) => typeof port.targetPort === "string" && Number.isNaN(Number(port.targetPort)));
  for (const port of named) {
    const has = pods.some((pod) => (pod.spec.containers ?? []).some((one) => (one.ports ?? []).some((each) => each.name === port.targetPort)));
    if (!has) found.push(cause(sentence`No container of the pods has a port named ${port.targetPort} (targetPort of port ${port.port}).`));
  }
  const controller = controllerCause(world, "services");
  if (controller) found.push(controller);
  return found.length ? found : [cause(sentence`Pods are ready, but the endpointslice-controller has not added them yet.`)];
}

// Pods that lack one of the labels only in its value; those whose value begins most like the wanted one.
function nearMiss(world, selector, heads) {
  const close = [];
  for (const head of heads) {
    const differing = Object.entries(selector).filter(([key, value]) => head.labels?.[key] !== value);
    const [key] = differing[0];
    const value = head.labels?.[key];
    if (differing.length === 1 && value !== undefined) close.push({ head, key, value, likeness: commonStart(value, selector[key]) });
  }
  if (!close.length) return null;
  const best = close.reduce((a, b) => (b.likeness > a.likeness ? b : a));
  const same = close.filter(({ key, value }) => key === best.key && value === best.value);
  return cause(sentence`${listed(same.map((one) => world.linkOf(one.head)))} ${same.length === 1 ? "has" : "have"} ${best.key}=${best.value} instead of ${best.key}=${selector[best.key]}.`);
}

function commonStart(a, b) {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

function whyNoBalancer(service) {
  if (service.status?.loadBalancer?.ingress?.length) return [];
  return [cause(sentence`The service has no address of a load balancer: nothing in this cluster hands them out.`, [], {
    fix: sentence`Cluster(load_balancers=True), or serve --load-balancers.` })];
}

export async function whyIngress(world, ingress) {
  const { namespace } = ingress.metadata;
  const found = [];
  const backends = [ingress.spec.defaultBackend, ...(ingress.spec.rules ?? []).flatMap((rule) => (rule.http?.paths ?? []).map((path) => path.backend))];
  const seen = new Set();
  for (const { service: backend } of backends.filter(Boolean)) {
    if (!backend || seen.has(backend.name)) continue;
    seen.add(backend.name);
    const service = await world.object("services", namespace, backend.name);
    if (!service) {
      found.push(cause(sentence`Service ${backend.name}, to which a rule leads, does not exist in ${namespace}.`));
      continue;
    }
    const port = (service.spec.ports ?? []).some((one) => one.port === backend.port?.number || one.name === backend.port?.name);
    if (!port) found.push(cause(sentence`${world.link("services", namespace, backend.name)} has no port ${backend.port?.number ?? backend.port?.name}.`));
    const causes = await whyService(world, service);
    if (causes.length) found.push(cause(sentence`${world.link("services", namespace, backend.name)} has no endpoints.`, causes));
  }
  for (const { secretName } of ingress.spec.tls ?? []) {
    if (secretName && !world.has("secrets", namespace, secretName)) found.push(cause(sentence`Secret ${secretName} for TLS does not exist in ${namespace}.`));
  }
  const className = ingress.spec.ingressClassName;
  if (className && !world.has("ingressclasses.networking.k8s.io", "", className)) found.push(cause(sentence`IngressClass ${className} does not exist.`));
  return found;
}

export async function whyAutoscaler(world, scaler) {
  const { namespace } = scaler.metadata;
  const found = [];
  const target = scaler.spec.scaleTargetRef;
  const r = world.resource(target.apiVersion, target.kind);
  if (!r || !world.has(r, namespace, target.name)) {
    return [cause(sentence`Its target ${target.kind} ${target.name} does not exist in ${namespace}.`, [], { fix: sentence`Correct spec.scaleTargetRef.` })];
  }
  const controller = controllerCause(world, "horizontalpodautoscalers.autoscaling");
  if (controller) found.push(controller);
  const able = conditionOf(scaler, "AbleToScale");
  const active = conditionOf(scaler, "ScalingActive");
  if (able?.status === "False") found.push(cause(sentence`It can't scale ${world.link(r, namespace, target.name)} (${able.reason}).`, [], { quote: able.message }));
  if (active?.status === "False") found.push(await whyInactive(world, scaler, active, r));
  return found;
}

async function whyInactive(world, scaler, active, r) {
  const { namespace } = scaler.metadata;
  const target = await world.object(r, namespace, scaler.spec.scaleTargetRef.name);
  const causes = [];
  if (active.reason === "ScalingDisabled") {
    causes.push(cause(sentence`${world.link(r, namespace, target.metadata.name)} has 0 replicas, and that switches the autoscaler off.`));
  } else {
    const containers = target?.spec?.template?.spec?.containers ?? [];
    for (const metric of scaler.spec.metrics ?? []) {
      const resource = metric.resource?.name ?? metric.containerResource?.name;
      const without = containers.filter((one) => resource && !one.resources?.requests?.[resource]);
      const isRelative = (metric.resource ?? metric.containerResource)?.target?.type === "Utilization";
      if (without.length && isRelative) causes.push(cause(sentence`${listed(without.map((one) => `Container ${one.name}`))} requests no ${resource}, of which the utilization would be computed.`));
    }
    if (/metrics\.k8s\.io|unable to (?:get|fetch) metrics|no metrics returned|could not find the requested resource/.test(active.message)) {
      causes.push(cause(sentence`The cluster doesn't serve the metrics it asks for.`, [], {
        fix: sentence`Cluster(metrics=["resource"]) serves them, and cluster.metrics sets the values.` }));
    }
  }
  return cause(sentence`It is not scaling (${active.reason}).`, causes, { quote: active.message });
}

export async function whyDisruptionBudget(world, budget) {
  const { status = {}, metadata } = budget;
  if ((status.disruptionsAllowed ?? 1) > 0) return [];
  const allowed = conditionOf(budget, "DisruptionAllowed");
  return [cause(sentence`It allows no eviction now: ${status.currentHealthy ?? 0} pods are healthy, and ${status.desiredHealthy ?? 0} must be.`, [
    status.expectedPods === 0 ? cause(sentence`Its selector matches no pod in ${objectLink("namespaces", "", metadata.namespace)}.`) : null], { quote: allowed?.message ?? "" })];
}
