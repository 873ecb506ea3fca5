import { TakemarkError } from './errors.js';

export interface Page<Entry> {
  readonly entries: readonly Entry[];
  readonly nextCursor?: string | undefined;
}

/** All entries of all pages; the next page is asked for when the one before has been taken. */
export async function* entriesOf<Entry>(
  read: (cursor: string | undefined) => Promise<Page<Entry>>,
): AsyncGenerator<Entry, void, undefined> {
  let cursor: string | undefined;
  for (;;) {
    const { entries, nextCursor } = await read(cursor);
    yield* entries;
    if (nextCursor === undefined) return;
    // A cursor that leads to itself would be followed for ever.
    if (nextCursor === cursor) throw new TakemarkError('bad_response', 'a page names itself as the next one');
    cursor = nextCursor;
  }
}
