import { randomBytes } from 'node:crypto';

/** The parts of a multipart body before and after the file. The file is streamed between them. */
export interface UploadForm {
  readonly contentType: string;
  readonly head: Buffer;
  readonly tail: Buffer;
}

/**
 * Builds a multipart form (RFC 7578). The service requires the fields and the sidecar first and the file last. The
 * file is always named `audio`, because its real name may contain a creator's name and the service does not need it.
 */
export function uploadForm(fields: Readonly<Record<string, string>>, sidecar?: Uint8Array): UploadForm {
  const boundary = `takemark-${randomBytes(18).toString('hex')}`;
  const head: Uint8Array[] = [];
  const begin = (disposition: string): void =>
    void head.push(Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`));
  for (const [name, value] of Object.entries(fields)) {
    begin(`name="${escaped(name)}"`);
    head.push(Buffer.from(`\r\n${value}\r\n`));
  }
  if (sidecar !== undefined) {
    begin('name="sidecar"; filename="sidecar"');
    head.push(BYTES, sidecar, Buffer.from('\r\n'));
  }
  begin('name="file"; filename="audio"');
  head.push(BYTES);
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    head: Buffer.concat(head),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  };
}

/** The end of the headers of a part that is a file. */
const BYTES = Buffer.from('Content-Type: application/octet-stream\r\n\r\n');

/** Escapes a name as browsers do (WHATWG HTML, multipart/form-data encoding algorithm). */
function escaped(name: string): string {
  return name.replace(/\r/g, '%0D').replace(/\n/g, '%0A').replace(/"/g, '%22');
}
