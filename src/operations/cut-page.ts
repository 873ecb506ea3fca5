/** Of one entry more than a page holds: the page, and its last entry where another page follows. */
export function cutPage<Entry>(
  found: readonly Entry[],
  limit: number,
): { readonly entries: readonly Entry[]; readonly last?: Entry } {
  const last = found.length > limit ? found[limit - 1] : undefined;
  return { entries: found.slice(0, limit), ...(last === undefined ? {} : { last }) };
}
