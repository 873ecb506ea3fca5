/**
 * The strongly connected groups of a graph whose nodes are 0 to `count - 1`. All nodes of a group lead to each other.
 * A group never leads to a group with a higher number.
 */
export interface Groups {
  readonly count: number;
  /** The number of the group of each node. */
  readonly of: Int32Array;
}

/** A graph. The targets of node `n` are `targets[starts[n]]` to `targets[starts[n + 1] - 1]`. */
export interface Graph {
  readonly count: number;
  readonly starts: Int32Array;
  readonly targets: Int32Array;
}

/** Builds a graph from its edges, which are given as two lists of equal length. */
export function graphOf(count: number, from: readonly number[], to: readonly number[]): Graph {
  const starts = new Int32Array(count + 1);
  for (const node of from) starts[node + 1]! += 1;
  for (let node = 0; node < count; node += 1) starts[node + 1]! += starts[node]!;
  const next = starts.slice();
  const targets = new Int32Array(to.length);
  for (const [edge, node] of from.entries()) {
    targets[next[node]!] = to[edge]!;
    next[node]! += 1;
  }
  return { count, starts, targets };
}

/**
 * Finds the groups in time linear in nodes and edges: Tarjan's algorithm, with a stack of its own instead of recursion.
 */
export function groupsOf({ count, starts, targets }: Graph): Groups {
  const of = new Int32Array(count).fill(-1);
  /** The order of the first visit from 1. Zero for a node that was not visited. */
  const visited = new Int32Array(count);
  /** The earliest visited node of an open group that each node leads to. */
  const lowest = new Int32Array(count);
  const next = starts.slice(0, count);
  const path: number[] = [];
  const open: number[] = [];
  let visits = 0;
  let groups = 0;
  const visit = (node: number): void => {
    visits += 1;
    visited[node] = lowest[node] = visits;
    path.push(node);
    open.push(node);
  };
  for (let root = 0; root < count; root += 1) {
    if (visited[root] !== 0) continue;
    visit(root);
    for (let node = path.at(-1); node !== undefined; node = path.at(-1)) {
      if (next[node]! < starts[node + 1]!) {
        const target = targets[next[node]!]!;
        next[node]! += 1;
        if (visited[target] === 0) visit(target);
        else if (of[target] === -1) lowest[node] = Math.min(lowest[node]!, visited[target]!);
        continue;
      }
      path.pop();
      const parent = path.at(-1);
      if (parent !== undefined) lowest[parent] = Math.min(lowest[parent]!, lowest[node]!);
      if (lowest[node] !== visited[node]) continue;
      for (let member = open.pop()!; ; member = open.pop()!) {
        of[member] = groups;
        if (member === node) break;
      }
      groups += 1;
    }
  }
  return { count: groups, of };
}
