// The filter of the time line: words that all must match.
//
// ns:shop client:kubectl verb:patch status:409 status:refused kind:pods object:web user:admin text -verb:get

const FIELDS = ["ns", "client", "verb", "status", "kind", "object", "user"];

// Returns [{field, value, negative}]; a word without a known field has the field "text".
export function parseQuery(query) {
  return query.trim().split(/\s+/).filter(Boolean).map((word) => {
    const negative = word.startsWith("-") && word.length > 1;
    const rest = negative ? word.slice(1) : word;
    const colon = rest.indexOf(":");
    const field = rest.slice(0, colon);
    const known = colon > 0 && FIELDS.includes(field) && colon < rest.length - 1;
    return { field: known ? field : "text", value: (known ? rest.slice(colon + 1) : rest).toLowerCase(), negative };
  });
}

// The query with the terms of a field replaced by one with `value`; without them if it is empty.
export function withTerm(query, field, value) {
  const words = query.trim().split(/\s+/).filter((word) => word && !word.startsWith(`${field}:`));
  return [...words, ...(value ? [`${field}:${value}`] : [])].join(" ");
}

export function termOf(query, field) {
  return parseQuery(query).find((term) => term.field === field && !term.negative)?.value ?? "";
}

function matchesStatus(status, value) {
  if (value === "refused") return status >= 400 || status === 0;
  if (value === "ok") return status > 0 && status < 400;
  return /^\dxx$/.test(value) ? String(status)[0] === value[0] : String(status) === value;
}

function isOfKind({ r = "" }, value, recording) {
  const kind = recording.kind(r);
  return r === value || kind.resource === value || kind.kind.toLowerCase() === value || (kind.short ?? []).includes(value);
}

const REQUEST_TESTS = {
  ns: (request, value) => request.ns === value,
  client: (request, value) => (request.client ?? "").toLowerCase().includes(value),
  verb: (request, value) => request.verb === value,
  status: (request, value) => matchesStatus(request.status, value),
  kind: isOfKind,
  object: (request, value) => (request.name ?? "").toLowerCase().includes(value),
  user: (request, value) => (request.user ?? "").toLowerCase().includes(value),
  text: (request, value) => `${request.verb} ${request.path} ${request.client} ${request.reason} ${request.message} ${request.name}`
    .toLowerCase().includes(value),
};

// For a state, the fields of requests are those of the request that wrote it.
const STATE_TESTS = {
  ns: REQUEST_TESTS.ns,
  kind: isOfKind,
  object: REQUEST_TESTS.object,
  text: (state, value) => `${state.r} ${state.ns} ${state.name}`.toLowerCase().includes(value),
};

const RECONCILE_TESTS = {
  ns: (reconcile, value) => reconcile.key.startsWith(`${value}/`),
  client: (reconcile, value) => reconcile.controller.toLowerCase().includes(value),
  status: (reconcile, value) => (value === "refused" ? Boolean(reconcile.error) : value === "ok" && !reconcile.error),
  object: (reconcile, value) => reconcile.key.toLowerCase().includes(value),
  text: (reconcile, value) => `${reconcile.controller} ${reconcile.key} ${reconcile.error}`.toLowerCase().includes(value),
};

// Returns a function: whether a record matches the query. What the query can't be about, such as the clock, matches.
export function predicateOf(query, recording) {
  const terms = parseQuery(query);
  if (!terms.length) return () => true;

  function matches(record, { field, value, negative }) {
    if (record.t === "request") return REQUEST_TESTS[field](record, value, recording) !== negative;
    if (record.t === "state") {
      if (STATE_TESTS[field]) return STATE_TESTS[field](record, value, recording) !== negative;
      const request = recording.request(record.by);
      return request ? REQUEST_TESTS[field](request, value, recording) !== negative : negative;
    }
    if (record.t === "reconcile") return RECONCILE_TESTS[field] ? RECONCILE_TESTS[field](record, value) !== negative : negative;
    return true;
  }

  const passes = (record) => terms.every((term) => matches(record, term));
  return (record) => {
    if (record.t !== "delivery") return passes(record);
    const watch = recording.watches.get(record.seq);
    return record.rev.some((rev) => {
      const state = recording.state(rev);
      return state !== null && terms.every((term) => (
        term.field === "client" && watch ? matches(watch.request, term) : matches(state, term)));
    });
  };
}
