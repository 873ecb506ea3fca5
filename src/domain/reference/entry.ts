/** Texts of one value of the contract, whoever reads them. */
export interface ReferenceEntry {
  /** Meaning, for whoever programs against the answer. */
  readonly meaning: string;
  /** Instruction for the caller. */
  readonly caller: string;
  /** Sentence that can be shown to the artist. It accuses nobody. */
  readonly artist: string;
}
