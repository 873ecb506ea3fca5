import { request } from 'node:http';
import { writeTrace } from '../../capture/write-trace.js';
import { collect } from '../../fixtures/service.js';
import type { ConfinedService } from './confined-service.js';

export const PART_HEAD = Buffer.from(
  '--B\r\nContent-Disposition: form-data; name="trace"; filename="t"\r\n\r\n',
);
const FILE_HEAD = Buffer.from('\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n');
const FORM_END = Buffer.from('\r\n--B--\r\n');

const pathOf = (partnerId: string): string =>
  `/operator/v1/proofs?${new URLSearchParams({ partnerId, song: 'x', fileName: 'x.wav', carrier: 'embedded' })}`;

/** Returns the head of a form with `length` bytes, for a socket. */
export function formHead(service: ConfinedService, partnerId: string, length: number): Buffer {
  const lines = [
    `POST ${pathOf(partnerId)} HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${service.token}`,
    'Content-Type: multipart/form-data; boundary=B',
    `Content-Length: ${length}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
}

/**
 * Issues with a trace from memory.
 * @returns the status, or 0 if the connection was cut
 */
export async function issueTraced(
  service: ConfinedService,
  partnerId: string,
  trace: Uint8Array,
  audio: Uint8Array,
): Promise<number> {
  const parts = [PART_HEAD, trace, FILE_HEAD, audio, FORM_END];
  return new Promise((resolve) => {
    const outgoing = request(
      {
        port: service.operatorPort,
        host: '127.0.0.1',
        method: 'POST',
        path: pathOf(partnerId),
        headers: {
          authorization: `Bearer ${service.token}`,
          'content-type': 'multipart/form-data; boundary=B',
          'content-length': parts.reduce((sum, { length }) => sum + length, 0),
        },
      },
      (answer) =>
        void collect(answer).then(
          () => resolve(answer.statusCode!),
          () => resolve(0),
        ),
    ).on('error', () => resolve(0));
    for (const part of parts) outgoing.write(part);
    outgoing.end();
  });
}

/** Writes the trace of a session without acts. */
export async function smallTrace(): Promise<Buffer> {
  const { bytes } = await writeTrace((writer) => {
    writer.append({ kind: 'session.opened', at: 0, sampleRate: 48_000 });
    return writer.seal();
  });
  return bytes;
}
