// A layered layout: each node in a column right of those that refer to it, in an order that avoids crossings. Pure.

export const NODE = { width: 200, height: 40, gapX: 90, gapY: 14 };
const SWEEPS = 6;

// Sets x and y of nodes ({key}), whose edges ({from, to}) lead to keys. Components are laid out one below the other, the large ones first.
export function layout(nodes, edges) {
  const index = new Map(nodes.map((node, place) => [node.key, place]));
  const out = nodes.map(() => []);
  const into = nodes.map(() => []);
  for (const { from, to } of edges) {
    const [a, b] = [index.get(from), index.get(to)];
    if (a === undefined || b === undefined || a === b) continue;
    out[a].push(b);
    into[b].push(a);
  }
  const layers = layersOf(out, into);
  const alone = [];
  const blocks = [];
  for (const component of components(out, into)) {
    if (component.length === 1) {
      alone.push(component[0]);
      continue;
    }
    const columns = ordered(component, layers, out, into);
    blocks.push({ component, width: columns.length * (NODE.width + NODE.gapX) - NODE.gapX, height: place(nodes, columns, out, into, 0) });
  }
  const { width, height } = pack(nodes, blocks);
  const across = Math.max(1, Math.floor(Math.max(width, 1100) / (NODE.width + NODE.gapY)));
  alone.sort((a, b) => nodes[a].key.localeCompare(nodes[b].key));
  alone.forEach((node, position) => {
    nodes[node].x = (position % across) * (NODE.width + NODE.gapY);
    nodes[node].y = height + Math.floor(position / across) * (NODE.height + NODE.gapY);
  });
  return nodes;
}

// Puts blocks beside and below each other, each where the picture is least high, so that it becomes about as wide as a window.
function pack(nodes, blocks) {
  if (!blocks.length) return { width: 0, height: 0 };
  const widest = Math.max(...blocks.map((block) => block.width));
  const area = blocks.reduce((sum, block) => sum + (block.height + NODE.gapY * 3), 0);
  const tallest = Math.max(...blocks.map((block) => block.height));
  const count = Math.max(1, Math.min(blocks.length, Math.round(Math.sqrt((area * 1.7) / widest)), Math.ceil(area / tallest)));
  const heights = new Array(count).fill(0);
  for (const { component, height } of blocks) {
    const column = heights.indexOf(Math.min(...heights));
    for (const node of component) {
      nodes[node].x += column * (widest + NODE.gapX);
      nodes[node].y += heights[column];
    }
    heights[column] += height + NODE.gapY * 3;
  }
  return { width: count * (widest + NODE.gapX) - NODE.gapX, height: Math.max(...heights) };
}

// The longest way from a node without predecessors; edges that close a circle don't count.
function layersOf(out, into) {
  const layers = new Int32Array(out.length);
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

// Gives the nodes their places and returns the height: each as near as possible to the middle of its neighbours before.
function place(nodes, columns, out, into, top) {
  const step = NODE.height + NODE.gapY;
  const tallest = Math.max(...columns.map((column) => column.length)) * step;
  columns.forEach((column, number) => {
    const free = (tallest - column.length * step) / 2;
    column.forEach((node, position) => {
      nodes[node].x = number * (NODE.width + NODE.gapX);
      nodes[node].y = top + free + position * step;
    });
  });
  for (let sweep = 0; sweep < 4; sweep += 1) {
    for (const column of sweep % 2 ? [...columns].reverse() : columns) align(nodes, column, sweep % 2 ? out : into, step);
  }
  const all = columns.flat();
  const least = Math.min(...all.map((node) => nodes[node].y));
  for (const node of all) nodes[node].y += top - least;
  return Math.max(...all.map((node) => nodes[node].y)) - top + NODE.height;
}

// Moves the nodes of a column towards their neighbours, keeping their order and distance: neighbours that would overlap move together
// (pool adjacent violators).
function align(nodes, column, near, step) {
  const blocks = [];
  column.forEach((node, position) => {
    const wished = near[node].length ? near[node].reduce((sum, other) => sum + nodes[other].y, 0) / near[node].length : nodes[node].y;
    let block = { sum: wished - position * step, weight: 1, members: [node], start: position };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, weight: before.weight + block.weight, members: [...before.members, ...block.members], start: before.start };
    }
    blocks.push(block);
  });
  for (const block of blocks) {
    block.members.forEach((node, offset) => {
      nodes[node].y = block.sum / block.weight + (block.start + offset) * step;
    });
  }
}
