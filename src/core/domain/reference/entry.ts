/** The texts about one value of the contract, one for each kind of reader. */
export interface ReferenceEntry {
  /** The meaning, for a developer who handles the response. */
  readonly meaning: string;
  /** The instruction for the caller. */
  readonly caller: string;
  /** The sentence that a caller can show to the artist. It accuses no person. */
  readonly artist: string;
}

/** Returns the meaning of each value of a registry. */
export function meaningsOf<Word extends string>(
  entries: Readonly<Record<Word, Pick<ReferenceEntry, 'meaning'>>>,
): Readonly<Record<Word, string>> {
  const pairs = Object.entries<Pick<ReferenceEntry, 'meaning'>>(entries);
  return Object.fromEntries(pairs.map(([word, { meaning }]) => [word, meaning])) as Readonly<
    Record<Word, string>
  >;
}
