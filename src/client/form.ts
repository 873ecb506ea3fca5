import { randomBytes } from 'node:crypto';

/** The parts of a multipart body before and after the file. The file is streamed between them. */
export interface UploadForm {
  readonly contentType: string;
  readonly head: Buffer;
  readonly tail: Buffer;
}

/**
 * Builds a multipart form (RFC 7578). The service requires the fields first and the file last. The file is
 * always named `audio`, because its real name may contain a creator's name and the service does not need it.
 */
export function uploadForm(fields: Readonly<Record<string, string>>): UploadForm {
  const boundary = `takemark-${randomBytes(18).toString('hex')}`;
  let head = '';
  for (const [name, value] of Object.entries(fields)) {
    head += `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"\r\n\r\n${value}\r\n`;
  }
  head += `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="audio"\r\nContent-Type: application/octet-stream\r\n\r\n`;
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    head: Buffer.from(head),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  };
}

/** Escapes a name as browsers do (WHATWG HTML, multipart/form-data encoding algorithm). */
function escaped(name: string): string {
  return name.replace(/\r/g, '%0D').replace(/\n/g, '%0A').replace(/"/g, '%22');
}
