import { WORK, type WorkBudget } from '../trace/work-budget.js';
import type { Span } from './arrangement.js';
import { type Graph, groupsOf } from './source-groups.js';

/** The places of one import in the arrangement: of the import itself, and of everything made from it. */
export interface Placements {
  /** The number of placements, including those whose time is unknown. */
  readonly count: number;
  /** The length in seconds that the placements cover together. */
  readonly seconds: number;
  /** The first spans of the merged placements. */
  readonly spans: readonly Span[];
}

class Merging {
  count = 0;
  seconds = 0;
  readonly spans: Span[] = [];
  #last: { readonly start: number; end: number } | undefined;

  constructor(private readonly maxSpans: number) {}

  /** Adds a span that does not start before the previous one. */
  add({ start, end }: Span): void {
    if (this.#last !== undefined && start <= this.#last.end) {
      this.#last.end = Math.max(this.#last.end, end);
      return;
    }
    this.#close();
    this.#last = { start, end };
  }

  finish(): Placements {
    this.#close();
    const { count, seconds, spans } = this;
    return { count, seconds, spans };
  }

  #close(): void {
    if (this.#last === undefined) return;
    // In this order of operations, because every rounding is part of the report.
    this.seconds = this.seconds + this.#last.end - this.#last.start;
    if (this.spans.length < this.maxSpans) this.spans.push(this.#last);
    this.#last = undefined;
  }
}

/**
 * Returns the placements of each import, in the order of `imports`. The sources made from the imports are found once
 * for all imports, and the spans are sorted once. So the work grows with sources, derivations and spans, and not with
 * their product.
 * @param graph leads from each source to the sources made from it
 * @param imports nodes of the graph
 * @param shown the spans of each node
 */
export function placementsOf(
  graph: Graph,
  imports: readonly number[],
  shown: readonly (readonly Span[] | undefined)[],
  maxSpans: number,
  budget: WorkBudget,
): readonly Placements[] {
  const words = (imports.length + 31) >>> 5;
  budget.spend((graph.count + graph.targets.length) * WORK.visit);
  const contained = importsByGroup(graph, imports, words);
  const merging = imports.map(() => new Merging(maxSpans));
  const known: { readonly span: Span; readonly set: Uint32Array }[] = [];
  for (const [node, spans] of shown.entries()) {
    const set = contained(node);
    const count = size(set);
    if (spans === undefined || count === 0) continue;
    budget.spend(spans.length * (WORK.visit + count * WORK.span));
    each(set, (index) => (merging[index]!.count += spans.length));
    for (const span of spans) if (span.end > span.start) known.push({ span, set });
  }
  budget.spendOnSorting(known.length);
  known.sort((one, other) => one.span.start - other.span.start || one.span.end - other.span.end);
  for (const { span, set } of known) each(set, (index) => merging[index]!.add(span));
  return merging.map((one) => one.finish());
}

/** Returns a function that gives the imports which a node contains, as a set of bits. */
function importsByGroup(
  graph: Graph,
  imports: readonly number[],
  words: number,
): (node: number) => Uint32Array {
  const groups = groupsOf(graph);
  const bits = new Uint32Array(groups.count * words);
  const setOf = (group: number): Uint32Array => bits.subarray(group * words, (group + 1) * words);
  for (const [index, node] of imports.entries()) setOf(groups.of[node]!)[index >>> 5]! |= 1 << (index & 31);
  const nodes = [...groups.of.keys()].sort((one, other) => groups.of[other]! - groups.of[one]!);
  // A group comes before every group that was made from it, so its own set is complete by then.
  for (const node of nodes) {
    const from = groups.of[node]! * words;
    for (let edge = graph.starts[node]!; edge < graph.starts[node + 1]!; edge += 1) {
      const to = groups.of[graph.targets[edge]!]! * words;
      for (let word = 0; word < words; word += 1) bits[to + word]! |= bits[from + word]!;
    }
  }
  return (node) => setOf(groups.of[node]!);
}

function size(set: Uint32Array): number {
  let count = 0;
  for (const word of set) for (let rest = word; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

/** Calls `take` with each member of a set. It is called up to sixteen million times, so it is not a generator. */
function each(set: Uint32Array, take: (member: number) => void): void {
  for (let at = 0; at < set.length; at += 1)
    for (let rest = set[at]!; rest !== 0; rest &= rest - 1) take(at * 32 + 31 - Math.clz32(rest & -rest));
}
