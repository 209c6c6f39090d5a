"""A page that shows an OpenAPI document: operations with their models, and a form to try each.

The page holds no data and is open to everyone. Its script loads `openapi.json` from beside the page, with the bearer token that the user
has typed in; the token stays in the browser tab and travels in the Authorization header only. Nothing comes from other servers.
"""

from typing import Final

from msgspec import Struct


class Page(Struct, frozen=True):
    """A static page with its response headers, without Content-Type."""

    body: bytes
    headers: dict[str, str]


_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #326ce5; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.4rem; margin: .5rem 0; }
form, .row { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .6rem 0; }
input, textarea, button { font: inherit; padding: .3rem .6rem; border: 1px solid var(--line); border-radius: 6px; }
input, textarea { background: Field; color: FieldText; }
button { cursor: pointer; background: var(--accent); color: #fff; border-color: transparent; }
button.plain { background: none; color: inherit; border-color: var(--line); }
textarea { box-sizing: border-box; width: 100%; min-height: 9rem; }
textarea, pre, code, .path { font-family: ui-monospace, monospace; font-size: .87rem; }
pre { background: var(--soft); padding: .7rem; border-radius: 6px; overflow: auto; max-height: 26rem; margin: .5rem 0; }
details { border-top: 1px solid var(--line); }
summary { cursor: pointer; padding: .4rem 0; }
details details { margin-left: 1rem; }
.tag > summary { font-weight: 600; }
.method { display: inline-block; width: 4.2rem; font-weight: 700; font-size: .8rem; text-transform: uppercase; }
.get { color: #1a7f37; } .post { color: #b35900; } .put, .patch { color: #8250df; } .delete { color: #cf222e; }
.note { opacity: .75; } .problem { color: #cf222e; }
label { display: flex; gap: .4rem; align-items: center; }
"""

_SCRIPT: Final = """
"use strict";
const $ = (id) => document.getElementById(id);
const key = "fakeapiserver-token";
let token = sessionStorage.getItem(key) || "";
let api = null;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Calls `fill` when the details are opened for the first time.
function folded(className, title, fill) {
  const details = element("details", { className }, element("summary", {}, ...title));
  details.addEventListener("toggle", () => { if (fill && details.open) { fill(details); fill = null; } });
  return details;
}

function headers(more) {
  return token ? { ...more, Authorization: "Bearer " + token } : { ...more };
}

function resolved(schema) {
  const seen = new Set();
  while (schema && schema.$ref && !seen.has(schema.$ref)) {
    seen.add(schema.$ref);
    schema = schema.$ref.slice(2).split("/").reduce((at, part) => at && at[part.replace(/~1/g, "/")], api);
  }
  if (schema && schema.allOf && schema.allOf.length === 1)
    return { ...resolved(schema.allOf[0]), ...schema, allOf: undefined };
  return schema || {};
}

function typeName(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.allOf && schema.allOf.length === 1) return typeName(schema.allOf[0]);
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.map(typeName).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return "list of " + typeName(schema.items || {});
  if (schema.type === "object" && schema.additionalProperties) return "map of " + typeName(schema.additionalProperties);
  return schema.type || "any";
}

// The schema with properties that a schema leads to, through lists, maps and choices.
function inner(schema) {
  const found = resolved(schema);
  if (found.properties) return found;
  for (const next of [found.items, found.additionalProperties, ...(found.anyOf || []), ...(found.oneOf || [])])
    if (next && typeof next === "object") { const object = inner(next); if (object) return object; }
  return null;
}

function model(schema) {
  const object = inner(schema);
  if (!object) return [element("div", { className: "note" }, typeName(schema))];
  const required = object.required || [];
  return Object.entries(object.properties).map(([name, property]) => {
    const text = [element("code", {}, name), " ", typeName(property), required.includes(name) ? ", required" : ""];
    const initial = property.default ?? null;
    if (initial !== null) text.push(", default " + JSON.stringify(initial));
    const description = property.description || resolved(property).description;
    if (description) text.push(element("span", { className: "note" }, " " + description));
    return inner(property) ? folded("", text, (into) => into.append(...model(property))) : element("div", {}, ...text);
  });
}

function example(schema, depth) {
  const found = resolved(schema);
  if (found.example !== undefined) return found.example;
  if (found.default !== undefined && found.default !== null) return found.default;
  if (found.properties && depth < 3) {
    const gvk = (found["x-kubernetes-group-version-kind"] || [])[0];
    const names = gvk ? ["apiVersion", "kind", "metadata"] : found.required || [];
    const made = Object.fromEntries(names.map((name) => [name, example(found.properties[name] || {}, depth + 1)]));
    const apiVersion = gvk && [gvk.group, gvk.version].filter(Boolean).join("/");
    if (gvk) Object.assign(made, { apiVersion, kind: gvk.kind, metadata: { name: "example" } });
    return made;
  }
  if (found.enum) return found.enum[0];
  return { string: "", integer: 0, number: 0, boolean: false, array: [], object: {} }[found.type] ?? null;
}

function operation(method, path, item, row) {
  const title = [element("span", { className: "method " + method }, method), element("span", { className: "path" }, path)];
  if (row.summary) title.push(element("span", { className: "note" }, " " + row.summary));
  return folded("operation", title, (into) => {
    const parameters = [...(item.parameters || []), ...(row.parameters || [])];
    const inputs = parameters.map((parameter) => (
      { parameter, input: element("input", { placeholder: typeName(parameter.schema || {}) }) }));
    if (row.description) into.append(element("div", { className: "note" }, row.description));
    for (const { parameter, input } of inputs) {
      input.value = parameter.name === "namespace" && parameter.in === "path" ? "default" : "";
      const name = element("code", {}, parameter.name);
      const note = [parameter.in, parameter.description].filter(Boolean).join(": ");
      into.append(element("label", { className: "row" }, name, input, element("span", { className: "note" }, note)));
    }
    const content = (row.requestBody || {}).content || {};
    const types = Object.keys(content);
    let body = null;
    if (types.length) {
      const json = content["application/json"] || content["*/*"] ? "application/json" : null;
      const type = json || types.find((name) => name === "application/merge-patch+json") || types[0];
      const schema = (content[type] || content[types[0]]).schema || {};
      body = { type, text: element("textarea", { spellcheck: false, value: JSON.stringify(example(schema, 0), null, 2) }) };
      into.append(folded("", ["Body: " + typeName(schema)], (details) => details.append(...model(schema))), body.text);
    }
    for (const [status, answer] of Object.entries(row.responses || {})) {
      const schema = (Object.values(answer.content || {})[0] || {}).schema;
      if (schema) into.append(folded("", [`Answer ${status}: ` + typeName(schema)], (details) => details.append(...model(schema))));
    }
    const output = element("div", {});
    const send = element("button", { type: "button" }, "Send");
    send.addEventListener("click", () => run(method, path, inputs, body, output));
    into.append(element("div", { className: "row" }, send), output);
  });
}

async function run(method, path, inputs, body, output) {
  const query = new URLSearchParams();
  let target = path;
  for (const { parameter, input } of inputs) {
    if (parameter.in === "path") target = target.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === "query" && input.value) query.append(parameter.name, input.value);
  }
  const base = ((api.servers || [])[0] || {}).url || "";
  const options = { method: method.toUpperCase(), headers: headers(body ? { "Content-Type": body.type } : {}) };
  if (body && body.text.value.trim()) options.body = body.text.value;
  const shown = query.size ? `${target}?${query}` : target;
  output.replaceChildren(element("pre", {}, "..."));
  try {
    const answer = await fetch(base.replace(/\\/$/, "") + shown, options);
    const text = await answer.text();
    output.replaceChildren(
      element("div", { className: answer.ok ? "status" : "status problem" }, `${answer.status} ${answer.statusText} ${shown}`),
      element("pre", {}, pretty(text).slice(0, 200000) || "(no body)"));
  } catch (problem) {
    output.replaceChildren(element("div", { className: "status problem" }, String(problem)));
  }
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

function show() {
  const wanted = $("filter").value.toLowerCase();
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of ["get", "post", "put", "patch", "delete", "head", "options"]) {
      const row = item[method];
      if (!row || !`${method} ${path} ${row.summary || ""}`.toLowerCase().includes(wanted)) continue;
      const tag = (row.tags || ["operations"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push([method, path, item, row]);
    }
  }
  const names = Object.fromEntries((api.tags || []).map((tag) => [tag.name, tag.description || tag.name]));
  const count = [...groups.values()].reduce((sum, rows) => sum + rows.length, 0);
  const sections = [...groups].map(([tag, rows]) => {
    const title = [names[tag] || tag, element("span", { className: "note" }, ` ${rows.length}`)];
    const section = folded("tag", title, (into) => into.append(...rows.map((row) => operation(...row))));
    if (groups.size === 1 || (wanted && count <= 30)) section.open = true;
    return section;
  });
  $("operations").replaceChildren(...(sections.length ? sections : ["No operation matches the filter."]));
}

async function load() {
  let answer;
  try {
    answer = await fetch("openapi.json", { headers: headers({ Accept: "application/json" }) });
  } catch (problem) {
    $("problem").textContent = String(problem);
    return;
  }
  $("filter").hidden = !answer.ok;
  $("login").hidden = answer.ok;
  $("forget").hidden = !token;
  if (!answer.ok) {
    const who = token ? "The server refuses this token" : "The server wants to know who you are";
    $("problem").textContent = `${who} (${answer.status}).`;
    $("operations").replaceChildren();
    return;
  }
  $("problem").textContent = "";
  api = await answer.json();
  document.title = $("title").textContent = api.info.title;
  $("description").textContent = api.info.description || "";
  show();
}

$("credentials").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  $("token").value = "";
  if (token) sessionStorage.setItem(key, token); else sessionStorage.removeItem(key);
  load();
});
$("forget").addEventListener("click", () => { token = ""; sessionStorage.removeItem(key); load(); });
$("filter").addEventListener("input", show);
load();
"""

_BODY: Final = """
<h1 id="title">fakeapiserver</h1>
<p id="description" class="note"></p>
<form id="credentials" autocomplete="off">
<input id="token" type="password" placeholder="Bearer token" aria-label="Bearer token" size="40" autocomplete="off">
<button>Use this token</button>
<button id="forget" type="button" class="plain" hidden>Forget the token</button>
</form>
<p id="problem" class="problem" role="alert"></p>
<div id="login" hidden>
<p>Log in with a bearer token, for example that of a service account:</p>
<pre>kubectl create serviceaccount browser
kubectl create clusterrolebinding browser --clusterrole=cluster-admin --serviceaccount=default:browser
kubectl create token browser</pre>
<p>Or run <code>kubectl proxy</code> and open this page at its address: then kubectl logs in for you. In Python, the token is
<code>cluster.token</code>. The token is sent in a header, and kept in this tab until you close it.</p>
</div>
<input id="filter" placeholder="Filter: pods, post, /scripts" aria-label="Filter" size="40" hidden>
<div id="operations"></div>
"""

PAGE: Final = Page(
    (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>fakeapiserver</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head><body>{_BODY}<script>{_SCRIPT}</script></body></html>\n"
    ).encode(),
    _HEADERS,
)
