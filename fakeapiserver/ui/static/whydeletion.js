// Why an object that is being deleted still exists: its finalizers, and who should remove them.

import { cause, code, listed, momentLink, numberOf, objectLink, requestLink, sentence } from "./cause.js";
import { ago } from "./dom.js";
import { conditionOf } from "./world.js";


export async function whyNotDeleted(world, r, object) {
  const { metadata } = object;
  const finalizers = [...(metadata.finalizers ?? [])];
  const found = [];
  if (r === "namespaces") found.push(...await whyNamespace(world, object));
  for (const finalizer of finalizers) found.push(await whyFinalizer(world, r, object, finalizer));
  if (r === "pods" && !finalizers.length) found.push(...await whyPodStays(world, object));
  return found.filter(Boolean);
}

// Who asked for the deletion, and how long ago: a cause to show beside the others.
export function deletionAsked(world, head) {
  const first = world.history(head.uid).find((state) => state.deleting);
  const request = world.writerOf(first);
  if (!request) return null;
  const seconds = world.time - request.time;
  return cause(sentence`${request.client} asked for the deletion ${seconds >= 1 ? `${ago(seconds)} ago ` : ""}(${requestLink(request.seq)}).`);
}

const KNOWN = {
  "kubernetes.io/pvc-protection": whyClaimProtected,
  "kubernetes.io/pv-protection": whyVolumeProtected,
  foregroundDeletion: whyForeground,
  orphan: whyOrphan,
  "customresourcecleanup.apiextensions.k8s.io": whyDefinition,
  "batch.kubernetes.io/job-tracking": whyTracked,
  "service.kubernetes.io/load-balancer-cleanup": whyLoadBalancer,
};

async function whyFinalizer(world, r, object, finalizer) {
  const head = world.head(r, object.metadata.namespace, object.metadata.name);
  const known = KNOWN[finalizer];
  if (known) return cause(sentence`It waits for the finalizer ${finalizer}.`, await known(world, object));
  const causes = [await whoAdded(world, head, finalizer), ...whoWatches(world, r, head), whoRemoves(world, r)];
  return cause(sentence`It waits for the finalizer ${finalizer}, which no client has removed.`, causes, {
    fix: sentence`Run the controller that owns ${finalizer}; or, if its clean-up isn't needed, remove the finalizer: ${code(`kubectl patch ${r} ${
      object.metadata.name}${object.metadata.namespace ? ` -n ${object.metadata.namespace}` : ""} --type=json -p '[{"op": "remove", "path": "/metadata/finalizers"}]'`)}`,
  });
}

// Who added a finalizer: the writer of the first state that has it.
async function whoAdded(world, head, finalizer) {
  const history = head ? world.history(head.uid).slice(0, 50) : [];
  for (const state of history) {
    const [object] = await world.load([state]);
    if (!object?.metadata.finalizers?.includes(finalizer)) continue;
    const request = world.writerOf(state);
    if (!request) return null;
    return cause(sentence`${request.client} ${state.op === "create" ? "created the object with it" : "added it"} (${requestLink(request.seq)}).`);
  }
  return null;
}

// Who ended the deletions of other objects of the kind that had waited for finalizers.
function whoRemoves(world, r) {
  const clients = new Map();
  for (const uid of world.recording.uidsOf.get(r) ?? []) {
    const [before, last] = world.history(uid).slice(-2);
    const request = last?.op === "delete" && before.deleting ? world.writerOf(last) : null;
    if (request) clients.set(request.client, (clients.get(request.client) ?? 0) + 1);
  }
  if (!clients.size) return null;
  return cause(sentence`The last finalizer of other ${world.recording.kind(r).resource} was removed by ${listed([...clients].map(([client, times]) => `${client} (${numberOf(times, "time")})`))}.`);
}

// Clients, apart from those of the cluster itself, that watch a kind at this moment; and those that did: the last of them until the state
// was saved with which this server began, or until they ended by themselves.
export function watchersOf(world, r) {
  const [now, before] = [new Set(), new Set()];
  let wasSaved = false;
  for (const { request, end } of world.recording.watches.values()) {
    if (request.r !== r || request.bundled || !world.isPast(request)) continue;
    const isOver = end && world.isPast(end);
    (isOver ? before : now).add(request.client);
    if (isOver) wasSaved = end.ended === "saved";
  }
  for (const client of now) before.delete(client);
  return { now: [...now], before: [...before], wasSaved };
}

// That clients have watched a kind, as a sentence.
export function watchedBefore({ before, wasSaved }, kind) {
  if (wasSaved) return sentence`${listed(before)} watched ${kind} when the state was saved with which this server began.`;
  return sentence`${listed(before)} watched ${kind} before, but ${before.length === 1 ? "doesn't" : "don't"} any more: has it ended?`;
}

function whoWatches(world, r, head) {
  const watchers = watchersOf(world, r);
  const { now, before } = watchers;
  const kind = world.recording.kind(r).resource;
  const causes = [];
  if (now.length) causes.push(cause(sentence`${listed(now)} ${now.length === 1 ? "watches" : "watch"} ${kind} and could remove it.`, now.map((client) => lastOf(world, client, head))));
  if (before.length) causes.push(cause(watchedBefore(watchers, kind)));
  if (!now.length && !before.length) causes.push(cause(sentence`No client watches ${kind} (apart from the cluster's own controllers), so the one that should remove it is not running.`));
  return causes;
}

// The last thing that a client did to an object, if it was refused.
function lastOf(world, client, head) {
  if (!head) return null;
  for (const request of world.newestRequests(5000)) {
    if (request.client !== client || request.r !== head.r || request.ns !== head.ns || request.name !== head.name || request.verb === "get") continue;
    return request.status >= 400
      ? cause(sentence`Its last ${request.verb} of the object was refused with ${request.status} ${request.reason} (${requestLink(request.seq)}).`, [], { quote: request.message ?? "" })
      : cause(sentence`Its last ${request.verb} of the object succeeded (${requestLink(request.seq)}), and kept the finalizer.`);
  }
  return cause(sentence`${client} has not written the object since.`);
}

async function whyClaimProtected(world, claim) {
  const { name, namespace } = claim.metadata;
  // Pods that aren't scheduled don't protect their claims.
  const pods = (await world.all("pods", namespace)).filter((pod) => pod.spec.nodeName && (pod.spec.volumes ?? []).some((volume) => volume.persistentVolumeClaim?.claimName === name));
  if (!pods.length) return controllerOff(world, "persistentvolumeclaim-protection-controller");
  return [cause(sentence`${listed(pods.map((pod) => world.link("pods", namespace, pod.metadata.name)))} ${pods.length === 1 ? "uses" : "use"} the claim.`, [], {
    fix: sentence`Delete the ${pods.length === 1 ? "pod" : "pods"} first.` })];
}

async function whyVolumeProtected(world, volume) {
  const claim = volume.spec.claimRef;
  if (volume.status?.phase !== "Bound" || !claim) return controllerOff(world, "persistentvolume-protection-controller");
  return [cause(sentence`The volume is bound to ${world.link("persistentvolumeclaims", claim.namespace, claim.name)}.`, [], { fix: sentence`Delete the claim first.` })];
}

function controllerOff(world, name) {
  const mode = world.mode(name);
  if (mode === "off" || mode === "step") return [cause(sentence`The ${name}, which removes it, is ${mode === "off" ? "off" : "in step mode"}.`)];
  return [cause(sentence`The ${name} removes it.`)];
}

async function whyForeground(world, object) {
  const heads = world.dependents(object.metadata.uid);
  const blocking = (await world.load(heads.slice(0, 200))).filter((one) =>
    (one.metadata.ownerReferences ?? []).some((owner) => owner.uid === object.metadata.uid && owner.blockOwnerDeletion));
  if (!blocking.length) return controllerOff(world, "garbage-collector-controller");
  const links = blocking.map((one) => [world.kindName(world.resource(one.apiVersion, one.kind) ?? one.kind), " ",
    objectLink(world.resource(one.apiVersion, one.kind) ?? one.kind, one.metadata.namespace, one.metadata.name)]);
  const stuck = await Promise.all(blocking.filter((one) => one.metadata.deletionTimestamp).slice(0, 3).map(async (one) => {
    const r = world.resource(one.apiVersion, one.kind);
    if (!r || one.metadata.uid === object.metadata.uid) return null;
    return cause(sentence`${world.link(r, one.metadata.namespace, one.metadata.name)} is being deleted, too.`, await whyNotDeleted(world, r, one));
  }));
  return [cause(sentence`It is deleted in the foreground, after its dependents: ${listed(links)} ${blocking.length === 1 ? "is" : "are"} left.`,
    [...stuck, ...controllerOff(world, "garbage-collector-controller")])];
}

function whyOrphan(world) {
  return controllerOff(world, "garbage-collector-controller");
}

async function whyDefinition(world, definition) {
  const r = definition.metadata.name;
  const heads = world.heads(r);
  if (!heads.length) return [cause(sentence`No object of the kind is left; the server removes the finalizer.`)];
  const stuck = (await world.load(heads.filter((head) => head.deleting).slice(0, 3)));
  return [cause(sentence`${numberOf(heads.length, "object")} of the kind ${heads.length === 1 ? "is" : "are"} left: ${listed(heads.slice(0, 20).map((head) => world.linkOf(head)))}.`,
    await Promise.all(stuck.map(async (one) => cause(sentence`${world.link(r, one.metadata.namespace, one.metadata.name)} can't be deleted.`, await whyNotDeleted(world, r, one)))))];
}

function whyTracked(world) {
  return controllerOff(world, "job-controller");
}

function whyLoadBalancer() {
  return [cause(sentence`A cloud provider's service controller removes it once the load balancer is gone. None runs in a simulated cluster without load_balancers=True.`)];
}

async function whyPodStays(world, pod) {
  const grace = pod.metadata.deletionGracePeriodSeconds ?? 0;
  const node = pod.spec.nodeName ? await world.object("nodes", "", pod.spec.nodeName) : null;
  const ready = node ? conditionOf(node, "Ready") : null;
  const due = Date.parse(pod.metadata.deletionTimestamp) / 1000 - world.time;
  if (pod.spec.nodeName && (!node || (ready && ready.status !== "True"))) {
    return [cause(sentence`Its node ${pod.spec.nodeName} ${node ? "is not ready" : "does not exist"}, so no kubelet ends the pod.`, [], {
      fix: sentence`Start the node again, or kubectl delete pod --grace-period=0 --force.` })];
  }
  if (due > 0) return [cause(sentence`Its grace period of ${grace} s ends in ${ago(due)} by the cluster's clock.`, [], {
    fix: sentence`Wait, or advance the clock under Levers.` })];
  return [cause(sentence`Its grace period of ${grace} s is over; the kubelet of ${pod.spec.nodeName ? world.link("nodes", "", pod.spec.nodeName) : "no node"} has not removed it yet.`)];
}

async function whyNamespace(world, namespace) {
  const { name } = namespace.metadata;
  const kinds = world.kinds.filter((kind) => kind.namespaced && !["events", "events.events.k8s.io"].includes(kind.r));
  const left = kinds.flatMap((kind) => world.heads(kind.r, name));
  const failed = ["NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure"]
    .map((type) => conditionOf(namespace, type)).filter((one) => one?.status === "True");
  const found = failed.map((one) => cause(sentence`The namespace's content can't be deleted completely (${one.type}).`, [], { quote: one.message }));
  const stuck = left.filter((head) => head.deleting);
  if (left.length) {
    const details = await Promise.all((await world.load(stuck.slice(0, 3))).map(async (one, index) => {
      const { r } = stuck[index];
      return cause(sentence`${world.link(r, name, one.metadata.name)} is being deleted, but still there.`, await whyNotDeleted(world, r, one));
    }));
    const others = left.filter((head) => !head.deleting);
    found.push(cause(sentence`${numberOf(left.length, "object")} ${left.length === 1 ? "is" : "are"} left in it: ${listed([...stuck, ...others].slice(0, 50).map((head) => world.linkOf(head)))}.`,
      [...details, ...(others.length ? controllerOff(world, "namespace-controller") : [])]));
  } else if ((namespace.spec?.finalizers ?? []).length) {
    found.push(...namespace.spec.finalizers.map((finalizer) => cause(sentence`It is empty, but spec.finalizers still has ${finalizer}.`,
      finalizer === "kubernetes" ? controllerOff(world, "namespace-controller") : foreignFinalizer(name))));
  }
  return found;
}

function foreignFinalizer(namespace) {
  const path = `/api/v1/namespaces/${namespace}/finalize`;
  return [cause(sentence`Another controller than those of the cluster removes it, by an update of ${path}.`, [], {
    fix: sentence`Run that controller; or, if its clean-up isn't needed, ${code(`kubectl get ns ${namespace} -o json | jq '.spec.finalizers = []' | kubectl replace --raw ${path} -f -`)}` })];
}

// The sentence about an object whose owners are gone and which the garbage collector has not deleted; null if that's not so.
export function whyOrphaned(world, head) {
  if (!head.owners?.length || head.deleting) return null;
  if (head.owners.some((uid) => world.byUid(uid))) return null;
  const known = head.owners.filter((uid) => world.recording.history(uid).length);
  if (!known.length) return null;
  const last = world.recording.history(known[0]).at(-1);
  return cause(sentence`Its owner ${last.name} is gone since ${momentLink(last.rev)}, but the garbage collector has not deleted it.`, controllerOff(world, "garbage-collector-controller"));
}
