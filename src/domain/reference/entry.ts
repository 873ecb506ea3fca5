/** Texts of one value of the contract, whoever reads them. */
export interface ReferenceEntry {
  /** Meaning, for whoever programs against the answer. */
  readonly meaning: string;
  /** Instruction for the caller. */
  readonly caller: string;
  /** Sentence that can be shown to the artist. It accuses nobody. */
  readonly artist: string;
}

/** Meaning of each value of a registry. */
export function meaningsOf<Word extends string>(
  entries: Readonly<Record<Word, Pick<ReferenceEntry, 'meaning'>>>,
): Readonly<Record<Word, string>> {
  const pairs = Object.entries<Pick<ReferenceEntry, 'meaning'>>(entries);
  return Object.fromEntries(pairs.map(([word, { meaning }]) => [word, meaning])) as Readonly<
    Record<Word, string>
  >;
}
