/**
 * `Content-Disposition` of a download (RFC 6266): a plain ASCII name that is safe on every file system, and
 * the whole name for readers that know `filename*` (RFC 8187). Neither holds a path.
 */
export function contentDisposition(fileName: string): string {
  const base = fileName
    .split(/[/\\]/)
    .at(-1)!
    .replaceAll(/\p{Cs}/gu, '\uFFFD');
  const ascii =
    base
      .normalize('NFKD')
      .replaceAll(/\p{M}/gu, '')
      .replaceAll(/[^\w.() -]/g, '_')
      .replace(/^\.+/, '_') || 'audio';
  const whole = encodeURIComponent(base).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${whole}`;
}
