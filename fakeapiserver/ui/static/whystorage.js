// Why a claim is not bound.

import { cause, listed, objectLink, sentence } from "./cause.js";
import { conditionOf, quantity } from "./world.js";

const CLASSES = "storageclasses.storage.k8s.io";
const DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class";

export async function whyClaim(world, claim) {
  const { name, namespace } = claim.metadata;
  const { phase } = claim.status ?? {};
  if (phase === "Lost") return [cause(sentence`The claim's volume ${claim.spec.volumeName ?? ""} does not exist any more.`)];
  if (phase === "Bound") return whyResize(claim);
  const [event] = (await world.eventsOf(claim)).filter((one) => one.type === "Warning" || one.reason === "WaitForFirstConsumer");
  const quote = event ? `${event.reason}: ${event.message ?? event.note}` : "";
  if (claim.spec.volumeName) {
    const volume = await world.object("persistentvolumes", "", claim.spec.volumeName);
    if (!volume) return [cause(sentence`The claim asks for the volume ${claim.spec.volumeName}, which does not exist.`, [], { quote })];
  }
  const className = claim.spec.storageClassName;
  if (className === undefined) return [await noClass(world, quote)];
  if (className === "") return [await noVolume(world, claim, quote)];
  const storageClass = await world.object(CLASSES, "", className);
  if (!storageClass) {
    const classes = world.heads(CLASSES).map((head) => world.linkOf(head));
    return [cause(sentence`StorageClass ${className} does not exist. ${classes.length ? ["There is ", listed(classes), "."] : "There are no storage classes."}`, [], {
      quote, fix: sentence`Create the class, or take another; simulated clusters have one with Cluster(local_storage=True).` })];
  }
  if (storageClass.volumeBindingMode === "WaitForFirstConsumer") {
    const users = await usersOf(world, namespace, name);
    if (!users.length) return [cause(sentence`${objectLink(CLASSES, "", className, `StorageClass ${className}`)} binds a claim when the first pod uses it, and no pod does.`)];
  }
  const provisioner = storageClass.provisioner;
  return [cause(sentence`No volume fits, and ${provisioner}, the provisioner of ${objectLink(CLASSES, "", className, `StorageClass ${className}`)}, has not made one.`, [
    provisioner === "kubernetes.io/no-provisioner" ? cause(sentence`This class never makes volumes: an administrator creates them.`)
      : cause(sentence`Volumes are made by a CSI driver; none runs in a simulated cluster without cloud_storage=True.`)], { quote })];
}

async function usersOf(world, namespace, name) {
  return (await world.all("pods", namespace)).filter((pod) => (pod.spec.volumes ?? []).some((one) => one.persistentVolumeClaim?.claimName === name));
}

async function noClass(world, quote) {
  const classes = await world.all(CLASSES);
  const isDefault = classes.some((one) => one.metadata.annotations?.[DEFAULT_CLASS] === "true");
  return cause(sentence`The claim names no storage class, and ${isDefault ? "the default class has not been applied to it" : "no class is the default"}.`, [], {
    quote, fix: sentence`Set spec.storageClassName, or mark a class as the default (${DEFAULT_CLASS}).` });
}

async function noVolume(world, claim, quote) {
  const asked = quantity(claim.spec.resources?.requests?.storage);
  const volumes = (await world.all("persistentvolumes")).filter((one) => !one.spec.storageClassName);
  const free = volumes.filter((one) => one.status?.phase === "Available");
  const fits = free.filter((one) => quantity(one.spec.capacity?.storage) >= asked);
  return cause(sentence`The claim's class is "" (no provisioning), and ${fits.length ? "no free volume has its access modes"
    : free.length ? `no free volume has ${claim.spec.resources?.requests?.storage}` : "there is no free volume without a class"}.`, [], { quote });
}

function whyResize(claim) {
  const resizing = conditionOf(claim, "Resizing") ?? conditionOf(claim, "FileSystemResizePending");
  return resizing?.status === "True" ? [cause(sentence`The volume grows (${resizing.type}).`, [], { quote: resizing.message ?? "" })] : [];
}
