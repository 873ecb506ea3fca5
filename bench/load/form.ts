const BOUNDARY = 'takemark-bench-7f3a9c51d2e84b06';

/**
 * Returns a presigned POST as its parts in order: the request head with the form's fields, the audio as it is,
 * and the closing boundary.
 */
export function uploadRequest(
  path: string,
  fields: Readonly<Record<string, string>>,
  audio: readonly Uint8Array[],
): (Uint8Array | string)[] {
  return formRequest(path, {}, fields, audio);
}

/** Returns the POST of a form with headers of its own, in the same parts. */
export function formRequest(
  path: string,
  headers: Readonly<Record<string, string>>,
  fields: Readonly<Record<string, string>>,
  audio: readonly Uint8Array[],
): (Uint8Array | string)[] {
  const before = [
    ...Object.entries(fields).map(
      ([name, value]) =>
        `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    ),
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="take.wav"\r\ncontent-type: audio/wav\r\n\r\n`,
  ].join('');
  const after = `\r\n--${BOUNDARY}--\r\n`;
  const length = before.length + after.length + audio.reduce((total, part) => total + part.length, 0);
  return [
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headerLines(headers)}content-type: multipart/form-data; boundary=${BOUNDARY}\r\ncontent-length: ${length}\r\n\r\n${before}`,
    ...audio,
    after,
  ];
}

export function jsonRequest(path: string, headers: Readonly<Record<string, string>>, body: string): string {
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${headerLines(headers)}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}
