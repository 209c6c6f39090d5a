// Why a write was refused, read from the message of the refusal: as causes, for requests, for events FailedCreate and for conditions.

import { cause, listed, numberOf, objectLink, requestLink, sentence } from "./cause.js";

// The causes of a refusal. `context`: {ns, client, user, r, verb, seq}, as far as they are known.
export async function causesOfRefusal(world, message, context = {}) {
  for (const [pattern, explain] of REFUSALS) {
    const match = pattern.exec(message);
    if (match) return [await explain(world, match, { ...context, message })].flat().filter(Boolean);
  }
  return [];
}

const REFUSALS = [
  [/exceeded quota: (.+)$/s, exceededQuota],
  [/failed quota: ([^:\s]+): must specify (.+)$/s, unspecifiedQuota],
  [/violates PodSecurity "([^"]+)": (.+)$/s, podSecurity],
  [/admission webhook "([^"]+)" denied the request(?: without explanation|: (.*))?/s, deniedByWebhook],
  [/failed calling webhook "([^"]+)": (.+)$/s, webhookFailed],
  [/(ValidatingAdmissionP|p)olicy '([^']+)'(?: with binding '([^']+)')? denied request: (.+)$/s, deniedByPolicy],
  [/User "([^"]*)" cannot (\S+) (?:resource "([^"]+)" in API group "([^"]*)"|path "([^"]+)")(?: in the namespace "([^"]+)")?/, missingRule],
  [/because (?:it is being terminated|namespace (\S+) is being terminated)|namespace "?([\w-]+)"? (?:is being|because it is being) terminated/, endingNamespace],
  [/serviceaccount "([^"]+)" not found|error looking up service account (\S+?)\/([\w.-]+)/, missingAccount],
  [/(?:(?:maximum|minimum) \S+ usage|\S+ max limit to request ratio) per \w+ is \S+/, limitRanges],
  [/the object has been modified; please apply your changes to the latest version/, staleWrite],
  [/Apply failed with (\d+) conflicts?: (.+)$/s, applyConflict],
  [/namespaces "([^"]+)" not found/, missingNamespace],
  [/no PriorityClass with name (\S+) was found/, missingPriority],
];

// "compute, requested: pods=1, used: pods=2, limited: pods=2" (several may follow each other)
async function exceededQuota(world, [, text], { ns }) {
  const quotas = text.split(/exceeded quota: /).map((one) => /^([^,]+), requested: (.*?), used: (.*?), limited: (.*?)(?:, $|$)/s.exec(one.trim())).filter(Boolean);
  return Promise.all(quotas.map(async ([, name, requested, used, limited]) => {
    const [asks, has, may] = [requested, used, limited].map(pairs);
    const quota = ns === undefined ? null : world.head("resourcequotas", ns, name);
    const link = objectLink("resourcequotas", ns ?? "", name, `ResourceQuota ${name}`);
    const limits = Object.keys(asks).map((key) => `${key} to ${may[key]} (${has[key]} in use, ${asks[key]} more asked for)`);
    return cause(sentence`${quota ? link : `ResourceQuota ${name}`} limits ${listed(limits)}.`, [await whoSetQuota(world, quota)], {
      fix: sentence`Raise ${Object.keys(asks).map((key) => `spec.hard["${key}"]`).join(", ")} of ${quota ? link : "the quota"}, or ask for less.`,
    });
  }));
}

function pairs(text) {
  return Object.fromEntries(text.split(",").map((pair) => pair.trim().split("=")).filter((pair) => pair.length === 2));
}

async function whoSetQuota(world, head) {
  if (!head) return null;
  const specs = world.history(head.uid).filter((state) => {
    const request = world.writerOf(state);
    return request && !request.sub && !request.bundled;
  });
  const state = specs.at(-1);
  if (!state) return cause(sentence`The quota was there when the recording began.`);
  const request = world.writerOf(state);
  return cause(sentence`${request.client} ${state.op === "create" ? "created" : "last wrote"} this quota (${requestLink(request.seq)}).`);
}

function unspecifiedQuota(world, [, name, what], { ns }) {
  return cause(sentence`${objectLink("resourcequotas", ns ?? "", name, `ResourceQuota ${name}`)} limits what the containers don't state: ${what}.`, [], {
    fix: sentence`Give the containers these values, or add a LimitRange with defaults.`,
  });
}

function podSecurity(world, [, level, why], { ns }) {
  return cause(sentence`Namespace ${objectLink("namespaces", "", ns ?? "", ns ?? "")} enforces the Pod Security Standard ${level}: ${why}.`, [], {
    fix: sentence`Set the securityContext that it asks for, or change the label pod-security.kubernetes.io/enforce of the namespace.`,
  });
}

async function webhookLink(world, name) {
  for (const r of ["validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io"]) {
    for (const one of await world.all(r)) {
      if ((one.webhooks ?? []).some((hook) => hook.name === name)) return objectLink(r, "", one.metadata.name, `${one.kind} ${one.metadata.name}`);
    }
  }
  return null;
}

async function deniedByWebhook(world, [, name, why]) {
  const link = await webhookLink(world, name);
  return cause(sentence`Admission webhook ${name}${link ? [" of ", link] : ""} denied it${why ? `: ${why}` : " without a reason"}`);
}

async function webhookFailed(world, [, name, why]) {
  const link = await webhookLink(world, name);
  return cause(sentence`Admission webhook ${name}${link ? [" of ", link] : ""} could not be called, and its failurePolicy is Fail: ${why}`, [], {
    fix: sentence`Start the webhook's server, or mend its clientConfig (service, port, caBundle).`,
  });
}

// Only the messages of validating policies name their kind.
function deniedByPolicy(world, [, kind, policy, binding, why]) {
  const [r, name] = kind === "p" ? ["mutatingadmissionpolic", "MutatingAdmissionPolicy"] : ["validatingadmissionpolic", "ValidatingAdmissionPolicy"];
  const group = "admissionregistration.k8s.io";
  const bound = binding ? [", in force by ", objectLink(`${r}ybindings.${group}`, "", binding, `binding ${binding}`), ","] : "";
  return cause(sentence`${objectLink(`${r}ies.${group}`, "", policy, `${name} ${policy}`)}${bound} denied it: ${why}`);
}

async function missingRule(world, [, user, verb, resource, group, path, ns]) {
  const what = path ? `the path ${path}` : `${resource}${group ? `.${group}` : ""}`;
  const where = path ? "" : ns ? ` in namespace ${ns}` : " in the whole cluster";
  const roles = await rolesOf(world, user, ns);
  const held = roles.length
    ? cause(sentence`${user} is bound to ${listed(roles)}, which ${roles.length === 1 ? "doesn't" : "don't"} allow it.`)
    : cause(sentence`No RoleBinding or ClusterRoleBinding ${ns ? `for namespace ${ns} ` : ""}names ${user} itself.`);
  const rule = path ? `{nonResourceURLs: ["${path}"], verbs: ["${verb}"]}`
    : `{apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["${verb}"]}`;
  return cause(sentence`No RBAC rule lets ${user} ${verb} ${what}${where}.`, [held], { fix: sentence`Add the rule ${rule} to a role of ${user}.` });
}

// Links to the roles that bindings give a user (by its own name, not by its groups).
export async function rolesOf(world, user, ns) {
  const account = /^system:serviceaccount:([^:]+):(.+)$/.exec(user);
  const isUser = (subject) => (subject.kind === "User" && subject.name === user) ||
    (account && subject.kind === "ServiceAccount" && subject.namespace === account[1] && subject.name === account[2]);
  const bindings = [...await world.all("clusterrolebindings.rbac.authorization.k8s.io"),
    ...(ns ? await world.all("rolebindings.rbac.authorization.k8s.io", ns) : [])];
  return bindings.filter((binding) => (binding.subjects ?? []).some(isUser)).map(({ roleRef, metadata }) => (roleRef.kind === "Role"
    ? objectLink("roles.rbac.authorization.k8s.io", metadata.namespace, roleRef.name, `Role ${roleRef.name}`)
    : objectLink("clusterroles.rbac.authorization.k8s.io", "", roleRef.name, `ClusterRole ${roleRef.name}`)));
}

function endingNamespace(world, [, one, other], { ns }) {
  const name = one ?? other ?? ns ?? "";
  return cause(sentence`Namespace ${objectLink("namespaces", "", name)} is being deleted: nothing new is created in it.`);
}

function missingAccount(world, [, one, ns, name], context) {
  const account = name ?? one;
  const place = ns ?? context.ns ?? "";
  return cause(sentence`ServiceAccount ${account} does not exist${place ? ` in namespace ${place}` : ""}.`, [
    world.mode("serviceaccount-controller") === "off" && account === "default"
      ? cause(sentence`The serviceaccount-controller, which creates the account "default", is off.`) : null,
  ], { fix: sentence`Create the service account, or correct spec.serviceAccountName.` });
}

// "[maximum cpu usage per Container is 1, but limit is 2, minimum memory usage per Pod is 1Gi.  No request is specified]", or a ratio
const BOUND = /(?:(maximum|minimum) (\S+) usage|(\S+) max limit to request (ratio)) per (\w+) is (\S+?)(?:, but (.+?)|\.\s+(No \w+ is specified))(?=, (?:maximum|minimum|\S+ max limit) |\]?$)/g;
const BOUND_FIELDS = { maximum: "max", minimum: "min", ratio: "maxLimitRequestRatio" };

async function limitRanges(world, { input }, { ns }) {
  const ranges = ns === undefined ? [] : await world.all("limitranges", ns);
  return [...input.matchAll(BOUND)].map(([, bound, used, rated, ratio, kind, limit, but, no]) => {
    const [resource, field] = [used ?? rated, BOUND_FIELDS[bound ?? ratio]];
    const range = ranges.find((one) => one.spec.limits.some((each) => each.type === kind && each[field]?.[resource] === limit));
    const link = range ? world.link("limitranges", ns, range.metadata.name) : "A LimitRange";
    const what = ratio ? `for the ratio of limit to request of ${resource}` : resource;
    return cause(sentence`${link} sets a ${bound ?? "maximum"} of ${limit} ${what} per ${kind}: ${but ?? no}.`, [], {
      fix: sentence`Set resources within the bounds, or change spec.limits of ${range ? link : "the LimitRange"}.` });
  });
}

function missingNamespace(world, [, name]) {
  return cause(sentence`Namespace ${name} does not exist.`, [], { fix: sentence`Create it first.` });
}

function missingPriority(world, [, name]) {
  return cause(sentence`PriorityClass ${name} does not exist.`, [], { fix: sentence`Create it, or correct spec.priorityClassName.` });
}

// Who wrote the object between the read and the write of a client.
async function staleWrite(world, match, { seq }) {
  const request = seq ? world.recording.request(seq) : null;
  if (!request?.name) return cause(sentence`Another client wrote the object after this one had read it.`);
  const details = await world.source.request(seq).catch(() => null);
  const between = writesBefore(world, request, Number(details?.body?.metadata?.resourceVersion));
  if (!between.length) return cause(sentence`The resourceVersion in the request is not the newest of the object.`);
  return cause(sentence`After ${request.client} had read the object, ${listed(between.map(({ writer }) => [writer.client, " wrote it (", requestLink(writer.seq), ")"]))}.`, [], {
    fix: sentence`A client that gets a conflict reads the object again and repeats its change (in client-go: retry.RetryOnConflict).`,
  });
}

// Writes by others to the object of a request, after the revision that its client had read: the newest three. Where that is unknown, those
// after the client's last write.
function writesBefore(world, request, read) {
  const found = [];
  for (const uid of world.recording.uidsNamed(request.r, request.ns ?? "", request.name)) {
    for (const state of world.recording.history(uid)) {
      const writer = world.recording.request(state.by);
      if (writer && writer.at <= request.at && writer.seq !== request.seq) found.push({ state, writer });
    }
  }
  if (read) return found.filter(({ state }) => state.rev > read).slice(-3);
  const own = found.findLastIndex(({ writer }) => writer.client === request.client);
  const others = found.slice(own + 1);
  return (others.length ? others : found.filter(({ writer }) => writer.client !== request.client)).slice(-3);
}

function applyConflict(world, [, count, what]) {
  const managers = [...new Set([...what.matchAll(/conflicts? with "([^"]+)"/g)].map((match) => match[1]))];
  const fields = [...what.matchAll(/(?:^|\n- |: )(\.[^\n,]+)/g)].map((match) => match[1]);
  return cause(sentence`${numberOf(Number(count), "field")} of the applied configuration ${count === "1" ? "belongs" : "belong"} to ${
    managers.length ? listed(managers) : "another manager"}${fields.length ? [": ", listed(fields)] : ""}.`, [], {
    fix: sentence`Leave the fields out of the configuration, or apply with --force-conflicts to take them over.`,
  });
}

