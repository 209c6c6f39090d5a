// Causes: sentences with links, and the causes of these in turn. Pure.

export function objectLink(r, ns, name, label) {
  return { label: label ?? name, ref: { object: { r, ns: ns ?? "", name } } };
}

export function requestLink(seq, label) {
  return { label: label ?? `request ${seq}`, ref: { request: seq } };
}

export function momentLink(revision, label) {
  return { label: label ?? `revision ${revision}`, ref: { moment: revision } };
}

// Part of a sentence that is a command or code.
export function code(text) {
  return { label: text, isCode: true };
}

// Names of clients that aren't products begin a sentence with a capital letter: "the test", "the page".
export function capitalised(text) {
  return text.replace(/^the (?=test\b|page\b)/, "The ");
}

// A sentence of texts and links: sentence`Pod ${objectLink("pods", "a", "web")} waits.`; arrays are listed, null is left out.
export function sentence(strings, ...values) {
  const parts = [];
  const add = (part) => {
    if (part === null || part === undefined || part === "") return;
    if (Array.isArray(part)) part.forEach(add);
    else if (typeof part !== "object" && typeof parts.at(-1) === "string") parts[parts.length - 1] += part;
    else parts.push(typeof part === "object" ? part : String(part));
  };
  strings.forEach((text, index) => {
    add(text);
    add(values[index]);
  });
  if (typeof parts[0] === "string") parts[0] = capitalised(parts[0]);
  return parts;
}

function textOf(parts) {
  return parts.map((part) => (typeof part === "string" ? part : part.label)).join("");
}

// One cause: {text, parts, links, because: [causes], fix: parts or null, quote: a message of another's or ""}.
export function cause(parts, because = [], { fix = null, quote = "" } = {}) {
  return { text: textOf(parts), parts, links: parts.filter((part) => part.ref), because: because.filter(Boolean), fix, quote };
}

// Joins parts as a list in a sentence: a, b and c; beyond `most`: a, b and 7 more.
export function listed(items, most = 3) {
  const shown = items.length > most + 1 ? items.slice(0, most) : items;
  const rest = items.length - shown.length;
  const parts = shown.flatMap((item, index) => {
    const isLast = index === shown.length - 1 && !rest;
    return index === 0 ? [item] : [isLast ? " and " : ", ", item];
  });
  return rest ? [...parts, ` and ${rest} more`] : parts;
}

// A number with its noun: 1 pod, 3 pods.
export function numberOf(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}
