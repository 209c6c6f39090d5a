// Why a request was refused or failed.

import { cause, listed, momentLink, requestLink, sentence } from "./cause.js";
import { causesOfRefusal, rolesOf } from "./refusals.js";

export async function whyRefused(world, request) {
  if (request.status < 400) return [];
  const causes = await causesOfRefusal(world, request.message ?? "", request);
  const quote = request.message ?? "";
  if (request.fault) {
    return [cause(sentence`A fault struck this request on purpose: ${faultText(request.fault)}.`, [], { quote, fix: sentence`Remove the fault under Levers.` })];
  }
  const rule = gateLead(request.message ?? "") ?? LEADS[request.status];
  const [lead, more] = rule ? await rule(world, request) : [sentence`The server answered ${request.status} ${request.reason ?? ""}.`, []];
  return [cause(lead, [...causes, ...more], { quote })];
}

function faultText(fault) {
  return typeof fault === "string" ? fault : Object.entries(fault).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(" ");
}

// Webhooks and policies choose the status of their refusals.
const GATES = [
  [/admission webhook "[^"]+" denied the request/, "An admission webhook refuses the request."],
  [/failed calling webhook "/, "An admission webhook is to judge the request, and can't be called."],
  [/olicy '[^']+'(?: with binding '[^']+')? denied request: /, "An admission policy refuses the request."],
];

function gateLead(message) {
  const gate = GATES.find(([pattern]) => pattern.test(message));
  return gate ? () => [sentence`${gate[1]}`, []] : null;
}

const LEADS = {
  400: () => [sentence`The request is malformed.`, []],
  401: () => [sentence`The server doesn't know who sends this: no valid certificate or token came with the request.`, []],
  403: forbidden,
  404: notFound,
  405: (world, { verb }) => [sentence`The resource doesn't have the verb ${verb}.`, []],
  409: conflict,
  410: () => [sentence`The resourceVersion is older than what the server still has; the client lists again.`, []],
  415: () => [sentence`The server doesn't take this Content-Type for this request.`, []],
  422: invalid,
  429: () => [sentence`The server asks the client to come later: an eviction that a PodDisruptionBudget doesn't allow, or too many requests at once.`, []],
  500: () => [sentence`An error within the server, an admission webhook or a converter.`, []],
  503: () => [sentence`What serves this path is not available.`, []],
  504: () => [sentence`The request's timeout is over.`, []],
};

async function forbidden(world, request) {
  const isAuthorizer = /^[^:]* is forbidden: User "|cannot \S+ (?:resource|path) "/.test(request.message ?? "");
  if (!isAuthorizer) return [sentence`An admission plugin refuses the request; RBAC allowed it.`, []];
  const roles = await rolesOf(world, request.user ?? "", request.ns);
  const others = allowedSince(world, request);
  return [sentence`${request.user || request.client} may not do this${roles.length ? "" : ": no role is bound to it"}.`, [
    request.why ? cause(sentence`The authorizer says: ${request.why}`) : null, others].filter(Boolean)];
}

// Whether the same request was allowed later: a binding came meanwhile.
function allowedSince(world, request) {
  for (const other of world.newestRequests(5000)) {
    if (other.seq <= request.seq) return null;
    if (other.status < 400 && other.user === request.user && other.verb === request.verb && other.r === request.r && other.ns === request.ns) {
      return cause(sentence`The same was allowed later (${requestLink(other.seq)}).`);
    }
  }
  return null;
}

function notFound(world, request) {
  if (!request.name) return [sentence`The server has no such path or resource: is its definition (CRD) installed, and is it served?`, []];
  const last = world.recording.uidsNamed(request.r, request.ns ?? "", request.name)
    .flatMap((uid) => world.recording.history(uid)).filter((state) => state.op === "delete" && state.at <= request.at).at(-1);
  const later = world.recording.uidsNamed(request.r, request.ns ?? "", request.name)
    .flatMap((uid) => world.recording.history(uid)).find((state) => state.op === "create" && state.at > request.at);
  const deleted = last && world.writerOf(last);
  return [sentence`The object doesn't exist at that moment.`, [
    deleted ? cause(sentence`${deleted.client} deleted it before (${requestLink(deleted.seq)}).`) : null,
    later ? cause(sentence`It was created later, at ${momentLink(later.rev)}.`) : null].filter(Boolean)];
}

function conflict(world, request) {
  if (request.reason !== "AlreadyExists") return [sentence`The object is not as the client thought it is.`, []];
  const states = world.recording.uidsNamed(request.r, request.ns ?? "", request.name ?? "").flatMap((uid) => world.recording.history(uid));
  const created = states.findLast((state) => state.op === "create" && state.at <= request.at);
  const writer = created ? world.writerOf(created) : null;
  return [sentence`An object with this name exists already.`, [writer ? cause(sentence`${writer.client} created it (${requestLink(writer.seq)}).`) : null].filter(Boolean)];
}

// "Pod "x" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: must be …]"
function invalidFields(message) {
  const match = /^(?:[^:]* is invalid: )\[?(.*?)\]?$/s.exec(message);
  return match ? match[1].split(/, (?=[\w.[\]"/-]+: (?:Required|Invalid|Forbidden|Unsupported|Duplicate|Not found|Internal|Too))/) : [];
}

function invalid(world, request) {
  const fields = invalidFields(request.message ?? "").map((text) => {
    const [, path, why] = /^([^:]+): (.*)$/s.exec(text) ?? [null, "", text];
    return cause(sentence`${path ? `${path}: ` : ""}${why}`);
  });
  return [sentence`The object is invalid${fields.length > 1 ? ` in ${fields.length} fields` : ""}.`, fields];
}

const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection", "apply"]);

// Refused writes of clients that have not succeeded since: [{client, verb, r, status, times, last, first}], the newest first.
export function refusedWrites(world, most = 5000) {
  const groups = new Map();
  const succeeded = new Set();
  for (const request of world.newestRequests(most)) {
    if (request.bundled || request.dry) continue;
    const isWrite = WRITES.has(request.verb);
    const exact = `${request.client} ${request.verb} ${request.r} ${request.sub} ${request.ns} ${request.name}`;
    if (request.status < 400) {
      succeeded.add(exact);
      if (request.verb === "create") succeeded.add(`${request.client} ${request.verb} ${request.r} ${request.sub} ${request.ns} `);
      continue;
    }
    if (!isWrite && request.status !== 403) continue;
    if (request.status === 404 || (request.status === 409 && request.reason === "AlreadyExists") || succeeded.has(exact)) continue;
    const key = `${request.client} ${request.verb} ${request.r} ${request.sub} ${request.ns} ${request.status} ${request.reason}`;
    const group = groups.get(key);
    if (group) {
      group.times += 1;
      group.first = request;
    } else groups.set(key, { client: request.client, verb: request.verb, r: request.r, status: request.status, times: 1, last: request, first: request });
  }
  // One lost race is the ordinary course of things.
  return [...groups.values()].filter((one) => one.status !== 409 || one.times >= 3);
}

export async function refusedCause(world, { client, verb, times, last }) {
  const what = last.name ? world.link(last.r, last.ns ?? "", last.name) : `${last.r}${last.ns ? ` in ${last.ns}` : ""}`;
  const count = times > 1 ? ` (${times} times)` : "";
  return cause(sentence`${client} was refused to ${verb} ${what}${last.sub ? `/${last.sub}` : ""}${count}: ${listed([`${last.status} ${last.reason}`])}, last by ${requestLink(last.seq)}.`,
    await whyRefused(world, last));
}
