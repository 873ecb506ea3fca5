/**
 * Returns true when a list of entity tags, or `*`, matches a tag (RFC 9110, 8.8.3 and 13.1). Any other text
 * matches nothing.
 */
export function matchesTag(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  const tags = list.match(/(W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? [];
  return tags.some((tag) => (comparison === 'weak' ? tag.replace(/^W\//, '') : tag) === etag);
}
