// The cells of many states, kept beyond what the source keeps of whole objects.

const MOST_KEPT = 30000;

export class CellStore {
  #cells = new Map(); // revision -> cells
  #waiting = new Set();

  constructor(source) {
    this.source = source;
  }

  get(revision) {
    return this.#cells.get(revision);
  }

  // Loads what is missing; revisions that the server has forgotten get no cells.
  async load(heads) {
    const missing = heads.map((head) => head.rev).filter((rev) => !this.#cells.has(rev) && !this.#waiting.has(rev));
    if (!missing.length) return;
    for (const rev of missing) this.#waiting.add(rev);
    try {
      const states = await this.source.states(missing, { objects: false, cells: true });
      if (this.#cells.size > MOST_KEPT) this.#cells.clear();
      for (const rev of missing) this.#cells.set(rev, states.get(rev)?.cells ?? []);
    } finally {
      for (const rev of missing) this.#waiting.delete(rev);
    }
  }
}
