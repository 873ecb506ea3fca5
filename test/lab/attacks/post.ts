import { once, setMaxListeners } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConfinedService } from './confined-service.js';

/** An upload slot that a partner's key opened. */
export interface OpenSlot {
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
}

export async function openSlot(service: ConfinedService, apiKey: string): Promise<OpenSlot> {
  const response = await fetch(`${service.partnerUrl}/v1/uploads`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: '{"purpose":"verify"}',
  });
  if (response.status !== 201) throw new Error(`slot: ${response.status}`);
  const { url, fields } = (await response.json()) as { url: string; fields: Record<string, string> };
  return { path: new URL(url).pathname, fields };
}

/** Returns the head and the first part of a post, cut before the value of a field. */
export function halfForm(path: string): Buffer {
  return Buffer.concat([
    postHead(path),
    Buffer.from('--B\r\nContent-Disposition: form-data; name="policy"\r\n\r\nx'),
  ]);
}

/** Returns a post up to the first byte of its file. */
export function beganForm({ path, fields }: OpenSlot): Buffer {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return Buffer.concat([
    postHead(path),
    Buffer.from(
      `${parts.join('')}--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n`,
    ),
  ]);
}

function postHead(path: string): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 60000000\r\n\r\n`,
  );
}

/**
 * Keeps one connection busy with an attack. Begins again after an answer or a cut, at most once a second.
 * @param hold sends the data; the connection is kept until `hold` ends
 * @returns the number of sent bytes, when `signal` aborts
 */
export async function renew(
  port: number,
  signal: AbortSignal,
  hold: (socket: Socket) => Promise<void>,
  localAddress = '127.0.0.1',
): Promise<number> {
  let sent = 0;
  setMaxListeners(0, signal);
  while (!signal.aborted) {
    const pause = delay(1000, undefined, { ref: false });
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    const cut = once(socket, 'close').catch(() => undefined);
    const stop = (): void => void socket.destroy();
    socket.on('error', () => undefined).on('data', stop);
    signal.addEventListener('abort', stop, { once: true });
    await Promise.all([hold(socket), cut]);
    signal.removeEventListener('abort', stop);
    sent += socket.bytesWritten;
    await pause;
  }
  return sent;
}
