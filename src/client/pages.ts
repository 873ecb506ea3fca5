import { TakemarkError } from './errors.js';

export interface Page<Entry> {
  readonly entries: readonly Entry[];
  readonly nextCursor?: string | undefined;
}

/** Yields all entries of all pages. The next page is read after the previous one is consumed. */
export async function* entriesOf<Entry>(
  read: (cursor: string | undefined) => Promise<Page<Entry>>,
): AsyncGenerator<Entry, void, undefined> {
  let cursor: string | undefined;
  for (;;) {
    const { entries, nextCursor } = await read(cursor);
    yield* entries;
    if (nextCursor === undefined) return;
    // Following a cursor that leads to itself would never end.
    if (nextCursor === cursor)
      throw new TakemarkError(
        'bad_response',
        'the service returned the cursor of this page as the cursor of the next page',
      );
    cursor = nextCursor;
  }
}
