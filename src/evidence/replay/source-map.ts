import { DomainError } from '../../domain/errors.js';
import type { ImportedSource, SourcePlacement } from '../../domain/session-evidence.js';
import type { TraceEvent } from '../../domain/trace.js';

type Import = TraceEvent & { readonly kind: 'import.added' };
type Origin = SourcePlacement['origin'];

/** Derivations that a replay follows. */
export const MAX_DERIVATIONS = 131_072;

/** An import with what is known of its file. */
export interface WitnessedImport {
  /** Id in the trace. */
  readonly source: number;
  readonly manner: ImportedSource['manner'];
  readonly samplesSha256: string | undefined;
  readonly originalSha256: string | undefined;
  readonly durationSeconds: number | undefined;
}

/** Sources of the session: how each came to be, and which imports are in it. */
export class SourceMap {
  readonly imports: WitnessedImport[] = [];
  readonly #origins = new Map<number, Origin>();
  /** Sources that were made of a source. */
  readonly #madeOf = new Map<number, Set<number>>();
  /** Sources that were told to be made of others. */
  readonly #derived = new Set<number>();
  /** Sources that are imported material. */
  readonly #material = new Set<number>();
  /** Sources that were made of a known one. */
  readonly #made = new Set<number>();
  /** Sources that something else may be in, beside what they were made of. */
  readonly #doubtful = new Set<number>();
  #derivations = 0;

  set(source: number, origin: Origin): void {
    this.#origins.set(source, origin);
  }

  has(source: number): boolean {
    return this.#origins.has(source);
  }

  /** True for an import, and for all that was made of one. */
  isMaterial(source: number | undefined): boolean {
    return source !== undefined && this.#material.has(source);
  }

  /** Number of pairs of a source and one that was made of it. */
  get derivations(): number {
    return this.#derivations;
  }

  /** Number of sources that were made of imported material. */
  get derivedMaterial(): number {
    return this.#material.size - this.imports.length;
  }

  /** Number of sources that were made of nobody knows what, or of what nobody knows the origin of. */
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

  /** @throws DomainError where there are more derivations than a replay follows */
  derive(source: number, from: number | undefined): void {
    // Material that is recorded again or rewritten is no recording; an import stays one.
    if (this.#origins.get(source) !== 'imported') {
      this.#origins.set(source, 'derived');
      this.#derived.add(source);
    }
    if (from === undefined) {
      this.#doubtful.add(source);
      return;
    }
    this.#made.add(source);
    const made = this.#madeOf.get(from) ?? new Set();
    if (made.has(source)) return;
    this.#derivations += 1;
    if (this.#derivations > MAX_DERIVATIONS)
      throw new DomainError('unprocessable', 'The trace derives more sources than one may.', {
        reason: 'trace_too_large',
      });
    this.#madeOf.set(from, made.add(source));
    if (this.#material.has(from)) this.#spread(source);
  }

  /** Each source becomes material once, so all spreading together is as long as the derivations are. */
  #spread(source: number): void {
    const open = [source];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      if (this.#material.has(one)) continue;
      this.#material.add(one);
      open.push(...(this.#madeOf.get(one) ?? []));
    }
  }

  /** Takes note that something else may be in a source than what it was made of. */
  doubt(source: number): void {
    this.#doubtful.add(source);
  }

  /** True where each of the sources is an import, or was made of imports alone. */
  areImportsAlone(sources: Iterable<number | undefined>): boolean {
    const others = new Set<number>(this.#doubtful);
    for (const [source, origin] of this.#origins)
      if (origin !== 'imported' && !this.#made.has(source)) others.add(source);
    for (const one of others) for (const made of this.#madeOf.get(one) ?? []) others.add(made);
    for (const source of sources)
      if (source === undefined || !this.#origins.has(source) || others.has(source)) return false;
    return true;
  }

  originOf(source: number | undefined): Origin {
    return source === undefined ? 'unknown' : (this.#origins.get(source) ?? 'unknown');
  }

  /**
   * A source and all that was made of it, and of that.
   * @param known sources that are left out, with what was made of them
   */
  descendants(source: number, known: ReadonlySet<number> = new Set()): ReadonlySet<number> {
    const found = new Set(known.has(source) ? [] : [source]);
    // A set is iterated over what joins it meanwhile, too.
    for (const one of found)
      for (const made of this.#madeOf.get(one) ?? []) if (!known.has(made)) found.add(made);
    return found;
  }

  /** Sources with all that they were made of, and of that. */
  ancestors(sources: Iterable<number>): ReadonlySet<number> {
    const madeFrom = new Map<number, number[]>();
    for (const [from, made] of this.#madeOf)
      for (const one of made) {
        const parts = madeFrom.get(one);
        if (parts === undefined) madeFrom.set(one, [from]);
        else parts.push(from);
      }
    const found = new Set(sources);
    // A set is iterated over what joins it meanwhile, too.
    for (const one of found) for (const from of madeFrom.get(one) ?? []) found.add(from);
    return found;
  }

  /** Every source that is imported material, with the index of the first import that is in it. */
  importedMaterial(): ReadonlyMap<number, number> {
    const first = new Map<number, number>();
    for (const [index, { source }] of this.imports.entries()) {
      const open = [source];
      for (let one = open.pop(); one !== undefined; one = open.pop()) {
        if (first.has(one)) continue;
        first.set(one, index);
        open.push(...(this.#madeOf.get(one) ?? []));
      }
    }
    return first;
  }
}
