// The lines that do again what the page shows: of requests, faults and levers, for a shell and for Python.

import { h } from "./dom.js";

const METHODS = { create: "POST", update: "PUT", patch: "PATCH", delete: "DELETE", deletecollection: "DELETE" };

export function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

// A value as Python writes it.
export function pythonValue(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${pythonValue(each)}`).join(", ")}}`;
  return JSON.stringify(value);
}

function patchType(body, query) {
  if (Array.isArray(body)) return "application/json-patch+json";
  if (/(^|&)force=|fieldManager=/.test(query) && body?.apiVersion && body?.kind) return "application/apply-patch+yaml";
  return "application/merge-patch+json";
}

// [[name, line]]: the request for kubectl, curl and Python. `kind`: that of its object. `body`: its decoded body, or null if it isn't known.
export function requestLines(request, kind, body) {
  const uri = `${request.path}${request.query ? `?${request.query}` : ""}`;
  const json = body === null ? "" : JSON.stringify(body);
  return [
    ["kubectl", kubectlLine(request, uri, body, json)],
    ["curl", curlLine(request, uri, body, json)],
    ["Python", pythonLine(request, kind, body)],
  ].filter(([, line]) => line);
}

function kubectlLine(request, uri, body, json) {
  const raw = shellWord(uri);
  if (request.verb === "create") return `kubectl create --raw ${raw} -f - <<< ${shellWord(json)}`;
  if (request.verb === "update") return `kubectl replace --raw ${raw} -f - <<< ${shellWord(json)}`;
  if (request.verb === "delete" || request.verb === "deletecollection") return `kubectl delete --raw ${raw}`;
  if (request.verb !== "patch") return `kubectl get --raw ${raw}`;
  const type = patchType(body, request.query);
  const target = `${request.r} ${request.name}${request.ns ? ` -n ${request.ns}` : ""}${request.sub ? ` --subresource=${request.sub}` : ""}`;
  if (type.includes("apply")) return `kubectl apply --server-side${request.sub ? ` --subresource=${request.sub}` : ""} -f - <<< ${shellWord(json)}`;
  return `kubectl patch ${target} --type=${type.includes("json-patch") ? "json" : "merge"} -p ${shellWord(json || "{}")}`;
}

function curlLine(request, uri, body, json) {
  const method = METHODS[request.verb] ?? "GET";
  const parts = ["curl", "--cacert ca.crt", '-H "Authorization: Bearer $TOKEN"'];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (json) {
    parts.push(`-H ${shellWord(`Content-Type: ${method === "PATCH" ? patchType(body, request.query) : "application/json"}`)}`, `-d ${shellWord(json)}`);
  }
  return `${parts.join(" ")} "$SERVER"${shellWord(uri)}`;
}

function pythonLine(request, kind, body) {
  if (!request.r) return "";
  const resource = JSON.stringify(request.r);
  const named = request.name ? `, ${JSON.stringify(request.name)}` : "";
  const namespace = request.ns && kind.namespaced ? `, namespace=${JSON.stringify(request.ns)}` : "";
  if (request.verb === "get") return `cluster.get(${resource}${named}${namespace})`;
  if (request.verb === "list" || request.verb === "watch") return `cluster.list(${resource}${namespace})`;
  if (request.verb === "delete") return `cluster.delete(${resource}${named}${namespace})`;
  if (body === null) return "";
  if (request.verb === "patch" && !patchType(body, request.query).includes("apply")) {
    const sub = request.sub ? `, subresource=${JSON.stringify(request.sub)}` : "";
    return `cluster.patch(${JSON.stringify(`${request.r}/${request.name}`)}, ${pythonValue(body)}${namespace}${sub})`;
  }
  return request.sub ? "" : `cluster.apply(${pythonValue(body)}${namespace})`;
}

// The fields of a fault that strikes the next request like this one, as it was struck if it was refused.
export function faultFor(request) {
  const fault = { verb: request.verb };
  if (request.r) fault.resource = request.sub ? `${request.r.replace(/\..*/, "")}/${request.sub}` : request.r;
  else fault.path = request.path;
  if (request.ns) fault.namespace = request.ns;
  if (request.name && request.verb !== "create") fault.name = request.name;
  if (request.bundled) fault.bundled = true;
  fault.status = [400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504].includes(request.status) ? request.status : 409;
  return { ...fault, times: 1 };
}

// [[name, line]]: a fault for a shell and for Python.
export function faultLines(fault) {
  const words = Object.entries(fault).map(([name, value]) => shellWord(`${name}=${value}`));
  const named = Object.entries(fault).map(([name, value]) => `${name}=${pythonValue(value)}`);
  return [["shell", `fakeapiserver faults add ${words.join(" ")}`], ["Python", `cluster.faults.add(${named.join(", ")})`]];
}

// A line of code with its name and a button that copies it.
export function copyLine(name, line, app) {
  return h("div", { class: "line" },
    h("span", { class: "muted name" }, name),
    h("code", { class: "code", tabindex: "0" }, line),
    h("button", { class: "button small", "aria-label": `Copy the line for ${name}`, on: { click: () => copy(line, app) } }, "Copy"));
}

// Copies a text; where the browser refuses that, e.g. in a page from a file, says so.
export async function copy(line, app) {
  try {
    await navigator.clipboard.writeText(line);
    app.notify("Copied.");
  } catch {
    app.notify("This browser doesn't let the page copy: select the line and copy it.");
  }
}
