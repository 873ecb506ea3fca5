import { randomBytes } from 'node:crypto';

/** The parts of a multipart body around the file, which is sent between them as it is read. */
export interface UploadForm {
  readonly contentType: string;
  readonly head: Buffer;
  readonly tail: Buffer;
}

/**
 * RFC 7578. The fields come first and the file last, as the service demands. The file is always called
 * `audio`: its real name may hold a creator's, and the service has no use for it.
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

/** Name escaped as browsers do (WHATWG HTML, multipart/form-data encoding algorithm). */
function escaped(name: string): string {
  return name.replace(/\r/g, '%0D').replace(/\n/g, '%0A').replace(/"/g, '%22');
}
