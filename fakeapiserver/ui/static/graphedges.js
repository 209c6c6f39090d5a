// Which objects of a namespace refer to which: owners, selectors, volumes, accounts, targets, bindings. Pure.

import { matchesMap, matchesSelector, selectorText } from "./selectors.js";

export const RBAC = "rbac.authorization.k8s.io";
// Kinds that aren't drawn: they say little, or there is one for every other object.
const HIDDEN = new Set(["events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "controllerrevisions.apps", "namespaces"]);

export function isDrawn(r) {
  return !HIDDEN.has(r);
}

// The edges of a set of objects: [{from, to, kind, label}]. `items`: [{head, object}] of the namespace. find(r, name, ns): the key of an object of
// that name, also of one that doesn't exist. Keys are "r/ns/name". `kind`: owns, selects, uses, targets, binds.
export function edgesOf(items, world) {
  const edges = [];
  const seen = new Set();
  const byUid = new Map(items.map(({ head }) => [head.uid, head]));
  const pods = items.filter(({ head }) => head.r === "pods");
  const add = (from, to, kind, label = "") => {
    const text = `${from} ${to} ${kind}`;
    if (from === to || seen.has(text)) return;
    seen.add(text);
    edges.push({ from, to, kind, label });
  };
  for (const { head, object } of items) {
    const key = keyOf(head);
    for (const uid of head.owners ?? []) {
      const owner = byUid.get(uid) ?? world.byUid(uid);
      if (owner) add(keyOf(owner), key, "owns");
    }
    if (!object?.spec && !object?.roleRef) continue;
    REFERENCES[head.r]?.({ head, object, key, add, pods, world });
    if (!REFERENCES[head.r]) templateOf(object, (spec) => podReferences(spec, head.ns, key, add, head.r));
  }
  return edges;
}

export function keyOf({ r, ns, name }) {
  return `${r}/${ns ?? ""}/${name}`;
}

function templateOf(object, use) {
  const spec = object.spec?.template?.spec ?? object.spec?.jobTemplate?.spec?.template?.spec;
  if (spec?.containers) use(spec);
}

// Workloads refer to what their pods' template refers to; a replica set only repeats its deployment.
function podReferences(spec, ns, key, add, r) {
  if (r === "replicasets.apps" || r === "jobs.batch") return;
  const to = (kind, name, label) => name && add(key, `${kind}/${ns}/${name}`, "uses", label);
  const account = spec.serviceAccountName;
  if (account && account !== "default") to("serviceaccounts", account, "runs as");
  for (const one of spec.imagePullSecrets ?? []) to("secrets", one.name, "pulls with");
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    for (const { valueFrom } of container.env ?? []) {
      to("configmaps", valueFrom?.configMapKeyRef?.name, "env");
      to("secrets", valueFrom?.secretKeyRef?.name, "env");
    }
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      to("configmaps", configMapRef?.name, "env");
      to("secrets", secretRef?.name, "env");
    }
  }
  for (const volume of spec.volumes ?? []) {
    to("configmaps", volume.configMap?.name, "volume");
    to("secrets", volume.secret?.secretName, "volume");
    to("persistentvolumeclaims", volume.persistentVolumeClaim?.claimName, "volume");
    for (const source of volume.projected?.sources ?? []) {
      if (source.configMap?.name !== "kube-root-ca.crt") to("configmaps", source.configMap?.name, "volume");
      to("secrets", source.secret?.name, "volume");
    }
  }
}

const REFERENCES = {
  pods: ({ head, object, key, add }) => {
    if (!(head.owners ?? []).length) podReferences(object.spec, head.ns, key, add, "pods");
    else for (const volume of object.spec.volumes ?? []) {
      if (volume.persistentVolumeClaim) add(key, `persistentvolumeclaims/${head.ns}/${volume.persistentVolumeClaim.claimName}`, "uses", "volume");
    }
  },
  services: ({ object, key, add, pods }) => selected(pods, (labels) => matchesMap(object.spec.selector, labels), key, add, object.spec.selector),
  "endpointslices.discovery.k8s.io": () => {},
  "networkpolicies.networking.k8s.io": ({ object, key, add, pods }) =>
    selected(pods, (labels) => matchesSelector(object.spec.podSelector ?? {}, labels), key, add, null, selectorText(object.spec.podSelector)),
  "poddisruptionbudgets.policy": ({ object, key, add, pods }) =>
    selected(pods, (labels) => matchesSelector(object.spec.selector, labels), key, add, null, selectorText(object.spec.selector)),
  "horizontalpodautoscalers.autoscaling": ({ head, object, key, add, world }) => {
    const { apiVersion, kind, name } = object.spec.scaleTargetRef;
    const r = world.resource(apiVersion, kind);
    if (r) add(key, `${r}/${head.ns}/${name}`, "targets", "scales");
  },
  "ingresses.networking.k8s.io": ({ head, object, key, add }) => {
    const paths = (object.spec.rules ?? []).flatMap((rule) => (rule.http?.paths ?? []).map((path) => [path.backend?.service?.name, `${rule.host ?? ""}${path.path ?? ""}`]));
    for (const [name, label] of [[object.spec.defaultBackend?.service?.name, "default"], ...paths]) if (name) add(key, `services/${head.ns}/${name}`, "targets", label);
    for (const { secretName } of object.spec.tls ?? []) if (secretName) add(key, `secrets/${head.ns}/${secretName}`, "uses", "TLS");
  },
  persistentvolumeclaims: ({ object, key, add }) => {
    if (object.spec.volumeName) add(key, `persistentvolumes//${object.spec.volumeName}`, "targets", "bound");
  },
  [`rolebindings.${RBAC}`]: bindingEdges,
  [`clusterrolebindings.${RBAC}`]: bindingEdges,
};

// Pods of one owner count as their owner's: the line goes to each pod, which the picture may fold.
function selected(pods, matches, key, add, map, text = "") {
  const label = text || Object.entries(map ?? {}).map(([name, value]) => `${name}=${value}`).join(",");
  for (const { head } of pods) if (matches(head.labels ?? {})) add(key, keyOf(head), "selects", label);
}

function bindingEdges({ head, object, key, add }) {
  const { kind, name } = object.roleRef;
  add(key, kind === "Role" ? `roles.${RBAC}/${head.ns}/${name}` : `clusterroles.${RBAC}//${name}`, "binds");
  for (const subject of object.subjects ?? []) {
    if (subject.kind === "ServiceAccount") add(`serviceaccounts/${subject.namespace ?? head.ns}/${subject.name}`, key, "binds");
    else add(`${subject.kind}//${subject.name}`, key, "binds");
  }
}

// ---------------------------------------------------------------- who can

function allows(rules, verb, resource, group) {
  const has = (list, value) => (list ?? []).some((one) => one === "*" || one === value);
  return (rules ?? []).find((rule) => has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, resource)) ?? null;
}

// Subjects that may do `verb` on a kind in a namespace: [{subject, binding, role, rule}], objects of RBAC given as lists.
export function whoCan({ verb, resource, group, ns }, { roles, clusterRoles, bindings, clusterBindings }) {
  const found = [];
  const inNamespace = ns ? bindings.filter((binding) => binding.metadata.namespace === ns) : [];
  for (const binding of [...clusterBindings, ...inNamespace]) {
    const { kind, name } = binding.roleRef;
    const role = kind === "Role" ? roles.find((one) => one.metadata.name === name && one.metadata.namespace === binding.metadata.namespace)
      : clusterRoles.find((one) => one.metadata.name === name);
    const rule = role && allows(role.rules, verb, resource, group);
    if (rule) for (const subject of binding.subjects ?? []) found.push({ subject, binding, role, rule });
  }
  return found;
}
