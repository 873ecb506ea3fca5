/**
 * The last path segment, without control characters and quotes: it goes into a Content-Disposition header.
 */
export function safeFileName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  const safe = last
    .replace(/[\p{C}"]/gu, '')
    .trim()
    .slice(0, 200)
    // The cut may go through a surrogate pair.
    .replace(/\p{Cs}$/u, '');
  return safe === '' || safe === '.' || safe === '..' ? 'recording' : safe;
}
