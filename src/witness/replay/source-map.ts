import { DomainError } from '../../core/domain/errors.js';
import type { ImportedSource, SourcePlacement } from '../domain/session-evidence.js';
import type { TraceEvent } from '../domain/trace.js';
import { type Graph, graphOf } from './source-groups.js';

type Import = TraceEvent & { readonly kind: 'import.added' };
type Origin = SourcePlacement['origin'];

/** The largest number of derivations that a replay follows. A trace with more is refused. */
export const MAX_DERIVATIONS = 131_072;

/** An import with the known facts about its file. */
export interface WitnessedImport {
  /** The id in the trace. */
  readonly source: number;
  readonly manner: ImportedSource['manner'];
  readonly samplesSha256: string | undefined;
  readonly originalSha256: string | undefined;
  readonly durationSeconds: number | undefined;
}

/** The sources of the session: how each was created, and which imports it contains. */
export class SourceMap {
  readonly imports: WitnessedImport[] = [];
  readonly #origins = new Map<number, Origin>();
  /** The sources that were made from each source, each with the number of its derivation. */
  readonly #madeOf = new Map<number, Map<number, number>>();
  /** The sources that the trace reports as derived. */
  readonly #derived = new Set<number>();
  /** The sources that are imported material. */
  readonly #material = new Set<number>();
  /** The sources that were made from a known source. */
  readonly #made = new Set<number>();
  /** The sources that may contain something else besides what they were made from. */
  readonly #doubtful = new Set<number>();
  #derivations = 0;

  set(source: number, origin: Origin): void {
    this.#origins.set(source, origin);
  }

  has(source: number): boolean {
    return this.#origins.has(source);
  }

  /** Reports whether a source is an import, or was made from one. */
  isMaterial(source: number | undefined): boolean {
    return source !== undefined && this.#material.has(source);
  }

  /** The number of sources whose origin is known or reported as unknown. */
  get size(): number {
    return this.#origins.size;
  }

  /** The number of pairs of a source and a source made from it. */
  get derivations(): number {
    return this.#derivations;
  }

  /** The number of sources that were made from imported material. */
  get derivedMaterial(): number {
    return this.#material.size - this.imports.length;
  }

  /** The number of sources that were made from an unknown source, or from a source of unknown origin. */
  get derivedOfUnknown(): number {
    const reached = new Set<number>();
    for (const [source, origin] of this.#origins)
      if (origin === 'unknown' || (origin === 'derived' && !this.#made.has(source)))
        for (const one of this.descendants(source, reached)) reached.add(one);
    return [...this.#derived].filter((source) => reached.has(source)).length;
  }

  isImport(source: number | undefined): boolean {
    return source !== undefined && this.#origins.get(source) === 'imported';
  }

  import({ source, manner, samplesSha256, originalSha256, frames, rate }: Import): void {
    this.#origins.set(source, 'imported');
    this.#material.add(source);
    const durationSeconds = frames === undefined || rate === undefined ? undefined : frames / rate;
    this.imports.push({ source, manner, samplesSha256, originalSha256, durationSeconds });
  }

  /**
   * Records that a source was derived.
   * @param from source that it was made from. Undefined when unknown
   * @throws DomainError when there are more derivations than a replay follows
   */
  derive(source: number, from: number | undefined): void {
    // Material that is recorded again or rewritten does not count as a recording. An import stays an import.
    if (this.#origins.get(source) !== 'imported') {
      this.#origins.set(source, 'derived');
      this.#derived.add(source);
    }
    if (from === undefined) {
      this.#doubtful.add(source);
      return;
    }
    this.#made.add(source);
    const made = this.#madeOf.get(from) ?? new Map<number, number>();
    if (made.has(source)) return;
    this.#derivations += 1;
    if (this.#derivations > MAX_DERIVATIONS)
      throw new DomainError('unprocessable', 'The trace has more derived sources than allowed.', {
        reason: 'trace_too_large',
      });
    this.#madeOf.set(from, made.set(source, this.#derivations));
    if (this.#material.has(from)) this.#spread(source);
  }

  /**
   * Marks a source and everything made from it as imported material. Each source is marked once, so the total
   * work is linear in the derivations.
   */
  #spread(source: number): void {
    const open = [source];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      if (this.#material.has(one)) continue;
      this.#material.add(one);
      open.push(...this.#madeFrom(one));
    }
  }

  /** Notes that a source may contain something else besides what it was made from. */
  doubt(source: number): void {
    this.#doubtful.add(source);
  }

  /** Reports whether each of the sources is an import, or was made only from imports. */
  areImportsAlone(sources: Iterable<number | undefined>): boolean {
    const others = new Set<number>(this.#doubtful);
    for (const [source, origin] of this.#origins)
      if (origin !== 'imported' && !this.#made.has(source)) others.add(source);
    for (const one of others) for (const made of this.#madeFrom(one)) others.add(made);
    for (const source of sources)
      if (source === undefined || !this.#origins.has(source) || others.has(source)) return false;
    return true;
  }

  originOf(source: number | undefined): Origin {
    return source === undefined ? 'unknown' : (this.#origins.get(source) ?? 'unknown');
  }

  /**
   * Returns a source and everything made from it, directly or indirectly.
   * @param known sources that are omitted, with everything made from them
   * @param derivations only so many derivations count, from the first one
   */
  descendants(
    source: number,
    known: ReadonlySet<number> = new Set(),
    derivations = Number.POSITIVE_INFINITY,
  ): ReadonlySet<number> {
    const found = new Set(known.has(source) ? [] : [source]);
    // The iteration of a set includes members that are added meanwhile.
    for (const one of found)
      for (const [made, number] of this.#madeOf.get(one) ?? [])
        if (number <= derivations && !known.has(made)) found.add(made);
    return found;
  }

  /** Returns the graph that leads from each source to those made from it, and the node of each source. */
  graph(): { readonly graph: Graph; readonly nodeOf: ReadonlyMap<number, number> } {
    const nodeOf = new Map<number, number>();
    const node = (source: number): number => {
      const known = nodeOf.get(source) ?? nodeOf.size;
      nodeOf.set(source, known);
      return known;
    };
    for (const { source } of this.imports) node(source);
    const from: number[] = [];
    const to: number[] = [];
    for (const [source, made] of this.#madeOf)
      for (const one of made.keys()) {
        from.push(node(source));
        to.push(node(one));
      }
    return { graph: graphOf(nodeOf.size, from, to), nodeOf };
  }

  /** Returns the sources and everything that they were made from, directly or indirectly. */
  ancestors(sources: Iterable<number>): ReadonlySet<number> {
    const madeFrom = new Map<number, number[]>();
    for (const [from, made] of this.#madeOf)
      for (const one of made.keys()) {
        const parts = madeFrom.get(one);
        if (parts === undefined) madeFrom.set(one, [from]);
        else parts.push(from);
      }
    const found = new Set(sources);
    // The iteration of a set includes members that are added meanwhile.
    for (const one of found) for (const from of madeFrom.get(one) ?? []) found.add(from);
    return found;
  }

  /** Returns every source that is imported material, with the index of the first import that it contains. */
  importedMaterial(): ReadonlyMap<number, number> {
    const first = new Map<number, number>();
    for (const [index, { source }] of this.imports.entries()) {
      const open = [source];
      for (let one = open.pop(); one !== undefined; one = open.pop()) {
        if (first.has(one)) continue;
        first.set(one, index);
        open.push(...this.#madeFrom(one));
      }
    }
    return first;
  }

  #madeFrom(source: number): Iterable<number> {
    return this.#madeOf.get(source)?.keys() ?? [];
  }
}
