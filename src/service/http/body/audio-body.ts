import type { DomainError } from '../../../core/domain/errors.js';
import type { Exchange } from '../exchange.js';
import { left, tooLarge, tooSlow } from './body-reader.js';
import { ClientPace } from './client-pace.js';

/**
 * Yields the body as it arrives, one chunk at a time. The iterating caller sets the pace, and can iterate
 * only once. Throws the errors of readBody, and the connection then still carries the response.
 * @param streamMs the time limit of the body, if it is not that of every streamed body
 */
export async function* audioBody(
  exchange: Exchange,
  maxBytes: number,
  streamMs = exchange.limits.streamMs,
): AsyncGenerator<Uint8Array, void> {
  const { request, message, log } = exchange;
  let chunk: Buffer | undefined;
  let ended = false;
  let failure: DomainError | undefined;
  let wake: (() => void) | undefined;
  const fail = (error: DomainError) => {
    failure ??= error;
    wake?.();
  };
  const pace = new ClientPace({ ...exchange.limits, streamMs }, { tooSlow: () => fail(tooSlow()) });
  const onData = (data: Buffer) => {
    request.pause();
    pace.received(data.length);
    pace.holding();
    log.bytesIn += data.length;
    chunk = chunk === undefined ? data : Buffer.concat([chunk, data]);
    if (log.bytesIn > maxBytes) fail(tooLarge(maxBytes));
    wake?.();
  };
  const onEnd = () => {
    ended = true;
    wake?.();
  };
  const onClose = () => {
    if (!ended) fail(left());
  };
  try {
    message.sendContinue();
    message.readBy(fail);
    request.on('end', onEnd).on('close', onClose).on('error', onClose).on('data', onData);
    while (true) {
      if (failure !== undefined) throw failure;
      if (chunk !== undefined) {
        const full: Buffer = chunk;
        chunk = undefined;
        yield full;
      } else if (ended) {
        return;
      } else {
        pace.waiting();
        await new Promise<void>((resolve) => {
          wake = resolve;
          request.resume();
        });
        wake = undefined;
      }
    }
  } finally {
    pace.stop();
    message.readBy(undefined);
    request.off('end', onEnd).off('close', onClose).off('data', onData);
  }
}
