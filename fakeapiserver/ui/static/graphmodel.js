// The nodes and edges of a namespace's graph at a moment; what is too much is folded into one node for each owner and kind.

import { edgesOf, isDrawn, keyOf } from "./graphedges.js";
import { summaries } from "./summary.js";
import { World } from "./world.js";

// Objects whose references are read, dependents of one owner and kind that are drawn singly, nodes that are seen at once, nodes of a picture.
const MOST_READ = 2000;
const MOST_SIBLINGS = 8;
const MOST_AT_ONCE = 80;
const MOST_NODES = 500;
// Objects that use one object: of more, the lines are only drawn when one end is pointed at, and don't hold the picture together.
const MOST_USERS = 6;

// {nodes: [{key, r, ns, name, tone, text, head, exists, members}], edges: [{from, to, kind, label}]}; `open`: keys of groups that aren't folded.
export async function graphOf(app, ns, moment, open) {
  const world = new World(app.recording, app.source, moment);
  const heads = world.kinds.filter((kind) => kind.namespaced && isDrawn(kind.r)).flatMap((kind) => world.heads(kind.r, ns)).filter(isInteresting);
  const [read, rest] = [heads.slice(0, MOST_READ), heads.slice(MOST_READ)];
  const objects = new Map((await world.load(read)).map((object) => [object.metadata.uid, object]));
  const items = heads.map((head) => ({ head, object: objects.get(head.uid) ?? null }));
  const edges = edgesOf(items, world);
  const nodes = new Map(heads.map((head) => [keyOf(head), nodeOfHead(head)]));
  for (const { from, to } of edges) for (const key of [from, to]) if (!nodes.has(key)) nodes.set(key, referredNode(world, key));
  const linked = new Set(edges.flatMap(({ from, to }) => [from, to]));
  const shown = [...nodes.values()].filter((node) => linked.has(node.key) || !isCommon(node));
  const folded = fold(shown, edges, open);
  const states = await summaries(app.source, shown.filter((node) => node.head).map((node) => node.head));
  for (const node of shown) Object.assign(node, states.get(node.head?.uid) ?? { tone: node.exists ? "plain" : "bad", text: node.exists ? "" : "does not exist" });
  for (const group of folded.nodes.filter((node) => node.members)) Object.assign(group, groupState(group));
  hideCrowds(folded);
  return { ...folded, total: heads.length, isCut: rest.length > 0 };
}

function nodeOfHead(head) {
  return { key: keyOf(head), r: head.r, ns: head.ns, name: head.name, head, exists: true, members: null };
}

// A node that is referred to: of the whole cluster, of another namespace, a subject, or one that doesn't exist.
function referredNode(world, key) {
  const [r, ns, ...rest] = key.split("/");
  const name = rest.join("/");
  const head = world.head(r, ns, name);
  if (head) return nodeOfHead(head);
  const isSubject = r === "User" || r === "Group";
  return { key, r, ns, name, head: null, exists: isSubject, members: null };
}

function isInteresting(head) {
  return !(head.r === "configmaps" && head.name === "kube-root-ca.crt") && !(head.r === "replicasets.apps" && head.deleting);
}

// What every namespace has, and is only drawn if something refers to it.
function isCommon(node) {
  return node.r === "serviceaccounts" && node.name === "default";
}

// Marks the edges to objects that many others use (`isHidden`), and says in these objects' texts how many that are.
function hideCrowds({ nodes, edges }) {
  const users = new Map(nodes.map((node) => [node.key, []]));
  for (const edge of edges) if (edge.kind === "uses") users.get(edge.to)?.push(edge);
  for (const node of nodes) {
    const crowd = users.get(node.key);
    if (crowd.length <= MOST_USERS) continue;
    for (const edge of crowd) edge.isHidden = true;
    node.text = [node.text, `used by ${crowd.length}`].filter(Boolean).join(", ");
  }
}

function groupState(group) {
  const tones = ["bad", "wait", "going", "ok", "plain"];
  const tone = tones.find((one) => group.members.some((member) => member.tone === one)) ?? "plain";
  const good = group.members.filter((member) => member.tone === "ok").length;
  return { tone, text: tone === "plain" ? "" : `${good}/${group.members.length} ready` };
}

// Folds the dependents of one owner and kind, and the unconnected objects of a kind, where there are many. What is too much to be seen at once
// is folded further: all such siblings, then everything by its kind.
function fold(nodes, edges, open) {
  const owner = new Map(edges.filter((edge) => edge.kind === "owns").map((edge) => [edge.to, edge.from]));
  const linked = new Set(edges.flatMap(({ from, to }) => [from, to]));
  const bySiblings = (node) => (owner.has(node.key) ? `${owner.get(node.key)} ${node.r}` : linked.has(node.key) ? node.key : node.r);
  const first = foldBy(nodes, edges, bySiblings, MOST_SIBLINGS, open);
  if (first.nodes.length <= MOST_AT_ONCE) return first;
  const second = foldBy(nodes, edges, bySiblings, 1, open);
  if (second.nodes.length <= MOST_NODES) return second;
  return foldBy(nodes, edges, (node) => `${owner.has(node.key) ? "owned" : ""} ${node.r}`, 1, open);
}

function foldBy(nodes, edges, keyFor, most, open) {
  const groups = new Map();
  for (const node of nodes) {
    const key = `group ${keyFor(node)}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(node);
  }
  const into = new Map(); // key of a node -> key of its group
  const shown = [];
  for (const [key, members] of groups) {
    if (members.length <= most || (open.has(key) && members.length <= MOST_NODES)) {
      shown.push(...members);
      continue;
    }
    for (const member of members) into.set(member.key, key);
    shown.push({ key, r: members[0].r, ns: members[0].ns, name: `${members.length} ${members[0].r.split(".")[0]}`, head: null, exists: true, members });
  }
  const seen = new Set();
  const joined = [];
  for (const edge of edges) {
    const [from, to] = [into.get(edge.from) ?? edge.from, into.get(edge.to) ?? edge.to];
    const text = `${from} ${to} ${edge.kind}`;
    if (from === to || seen.has(text)) continue;
    seen.add(text);
    joined.push({ ...edge, from, to });
  }
  return { nodes: shown, edges: joined };
}
