// A layered layout: each node in a column right of those that refer to it, in an order that avoids crossings. Edges that pass a column
// have a place of their own there, between its nodes. Pure.

export const NODE = { width: 200, height: 40, gapX: 90, gapY: 14 };
const SWEEPS = 6;

// Sets x and y of nodes ({key}), whose edges ({from, to, kind}) lead to keys, and `via` of edges: [{x, y}], where they pass columns.
// Components are laid out beside and below each other, the large ones first.
export function layout(nodes, edges) {
  const items = nodes.map(({ key }) => ({ key, x: 0, y: 0, height: NODE.height })); // nodes, then places of edges
  const [out, into, layers] = withPassages(items, edges);
  const alone = [];
  const blocks = [];
  for (const component of components(out, into)) {
    if (component.length === 1) {
      alone.push(component[0]);
      continue;
    }
    const columns = ordered(component, layers, out, into);
    blocks.push({ component, width: columns.length * (NODE.width + NODE.gapX) - NODE.gapX, height: place(items, columns, out, into) });
  }
  const { width, height } = pack(items, blocks);
  const across = Math.max(1, Math.floor(Math.max(width, 1100) / (NODE.width + NODE.gapY)));
  alone.sort((a, b) => items[a].key.localeCompare(items[b].key));
  alone.forEach((item, position) => {
    items[item].x = (position % across) * (NODE.width + NODE.gapY);
    items[item].y = height + Math.floor(position / across) * (NODE.height + NODE.gapY);
  });
  nodes.forEach((node, index) => Object.assign(node, { x: items[index].x, y: items[index].y }));
  return nodes;
}

// [out, into, layers]: the neighbours and the column of each item. Adds an item to each column that an edge passes, and names them in `via`
// of the edge. Edges of a sort to the same node join where they meet.
function withPassages(items, edges) {
  const index = new Map(items.map((item, place) => [item.key, place]));
  const ends = edges.map(({ from, to }) => [index.get(from), index.get(to)]);
  const isDrawn = ([a, b]) => a !== undefined && b !== undefined && a !== b;
  const layers = layersOf(...neighbours(items.length, ends.filter(isDrawn)));
  const passages = new Map(); // "node sort column" -> item
  const steps = [];
  edges.forEach((edge, number) => {
    edge.via = [];
    if (!isDrawn(ends[number])) return;
    const [a, b] = ends[number];
    let last = a;
    for (let layer = layers[a] + 1; layer < layers[b]; layer += 1) {
      const key = `${b} ${edge.kind === "owns"} ${layer}`;
      if (!passages.has(key)) {
        passages.set(key, items.length);
        items.push({ x: 0, y: 0, height: 0 });
        layers.push(layer);
      }
      steps.push([last, passages.get(key)]);
      last = passages.get(key);
      edge.via.push(items[last]);
    }
    steps.push([last, b]);
  });
  return [...neighbours(items.length, steps), layers];
}

function neighbours(count, steps) {
  const [out, into] = [Array.from({ length: count }, () => []), Array.from({ length: count }, () => [])];
  for (const [a, b] of new Map(steps.map((step) => [step.join(), step])).values()) {
    out[a].push(b);
    into[b].push(a);
  }
  return [out, into];
}

// Puts blocks beside and below each other, each where the picture is least high, so that it becomes about as wide as a window.
function pack(items, blocks) {
  if (!blocks.length) return { width: 0, height: 0 };
  const widest = Math.max(...blocks.map((block) => block.width));
  const area = blocks.reduce((sum, block) => sum + (block.height + NODE.gapY * 3), 0);
  const tallest = Math.max(...blocks.map((block) => block.height));
  const count = Math.max(1, Math.min(blocks.length, Math.round(Math.sqrt((area * 1.7) / widest)), Math.ceil(area / tallest)));
  const heights = new Array(count).fill(0);
  for (const { component, height } of blocks) {
    const column = heights.indexOf(Math.min(...heights));
    for (const item of component) {
      items[item].x += column * (widest + NODE.gapX);
      items[item].y += heights[column];
    }
    heights[column] += height + NODE.gapY * 3;
  }
  return { width: count * (widest + NODE.gapX) - NODE.gapX, height: Math.max(...heights) };
}

// The longest way from a node without predecessors; edges that close a circle don't count.
function layersOf(out, into) {
  const layers = new Array(out.length).fill(0);
  const open = Int32Array.from(into, (list) => list.length);
  const queue = [];
  const done = new Uint8Array(out.length);
  open.forEach((count, node) => count === 0 && queue.push(node));
  for (let rest = out.length, next = 0; rest > 0; rest -= 1) {
    if (!queue.length) {
      while (done[next]) next += 1;
      queue.push(next);
    }
    const node = queue.shift();
    if (done[node]) {
      rest += 1;
      continue;
    }
    done[node] = 1;
    for (const to of out[node]) {
      if (done[to]) continue;
      layers[to] = Math.max(layers[to], layers[node] + 1);
      open[to] -= 1;
      if (open[to] === 0) queue.push(to);
    }
  }
  // A node without predecessors moves next to the first that it refers to: services beside their pods, bindings beside their roles.
  out.forEach((targets, node) => {
    if (!into[node].length && targets.length) layers[node] = Math.max(0, Math.min(...targets.map((to) => layers[to])) - 1);
  });
  return layers;
}

function components(out, into) {
  const seen = new Uint8Array(out.length);
  const found = [];
  for (let start = 0; start < out.length; start += 1) {
    if (seen[start]) continue;
    const component = [];
    const open = [start];
    seen[start] = 1;
    while (open.length) {
      const node = open.pop();
      component.push(node);
      for (const other of [...out[node], ...into[node]]) {
        if (seen[other]) continue;
        seen[other] = 1;
        open.push(other);
      }
    }
    found.push(component);
  }
  return found.sort((a, b) => b.length - a.length);
}

// Columns of a component; each is sorted by the mean place of its neighbours, in several sweeps to and fro.
function ordered(component, layers, out, into) {
  const least = Math.min(...component.map((node) => layers[node]));
  const columns = [];
  for (const node of component.sort((a, b) => a - b)) (columns[layers[node] - least] ??= []).push(node);
  for (let column = 0; column < columns.length; column += 1) columns[column] ??= [];
  const places = new Map();
  const remember = (column) => column.forEach((node, position) => places.set(node, column.length > 1 ? position / (column.length - 1) : 0.5));
  columns.forEach(remember);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const sequence = isForward ? columns : [...columns].reverse();
    for (const column of sequence) {
      const mean = new Map(column.map((node) => {
        const near = isForward ? into[node] : out[node];
        const from = near.length ? near : [node];
        return [node, from.reduce((sum, other) => sum + (places.get(other) ?? 0.5), 0) / from.length];
      }));
      column.sort((a, b) => mean.get(a) - mean.get(b) || a - b);
      remember(column);
    }
  }
  return columns;
}

// Gives the items of columns their places and returns the height: each as near as possible to the middle of its neighbours before.
function place(items, columns, out, into) {
  const heightOf = (column) => column.reduce((sum, item) => sum + items[item].height + NODE.gapY, 0);
  const tallest = Math.max(...columns.map(heightOf));
  columns.forEach((column, number) => {
    let y = (tallest - heightOf(column)) / 2;
    for (const item of column) {
      Object.assign(items[item], { x: number * (NODE.width + NODE.gapX), y });
      y += items[item].height + NODE.gapY;
    }
  });
  for (let sweep = 0; sweep < 4; sweep += 1) {
    for (const column of sweep % 2 ? [...columns].reverse() : columns) align(items, column, sweep % 2 ? out : into);
  }
  const all = columns.flat().map((item) => items[item]);
  const least = Math.min(...all.map((item) => item.y));
  for (const item of all) item.y -= least;
  return Math.max(...all.map((item) => item.y + item.height));
}

// Moves the items of a column towards their neighbours, keeping their order and distance: those that would overlap move together
// (pool adjacent violators).
function align(items, column, near) {
  const middleOf = (item) => items[item].y + items[item].height / 2;
  const blocks = [];
  let offset = 0; // of an item in a column without gaps
  for (const item of column) {
    const wished = near[item].length ? near[item].reduce((sum, other) => sum + middleOf(other), 0) / near[item].length : middleOf(item);
    let block = { sum: wished - items[item].height / 2 - offset, members: [[item, offset]] };
    while (blocks.length && meanOf(blocks.at(-1)) > meanOf(block)) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, members: [...before.members, ...block.members] };
    }
    blocks.push(block);
    offset += items[item].height + NODE.gapY;
  }
  for (const block of blocks) for (const [item, place] of block.members) items[item].y = meanOf(block) + place;
}

function meanOf({ sum, members }) {
  return sum / members.length;
}
