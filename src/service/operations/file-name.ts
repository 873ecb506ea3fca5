/**
 * Returns the last path segment without control characters and quotes, safe for a Content-Disposition header.
 */
export function safeFileName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  const safe = last
    .replace(/[\p{C}"]/gu, '')
    .trim()
    .slice(0, 200)
    // The cut may split a surrogate pair.
    .replace(/\p{Cs}$/u, '');
  return safe === '' || safe === '.' || safe === '..' ? 'recording' : safe;
}
