import { DomainError } from '../../../core/domain/errors.js';
import type { Exchange } from '../exchange.js';
import { ChunkSizes, chunksTooSmall } from '../response/chunk-sizes.js';
import { GrowingBuffer } from './growing-buffer.js';

/**
 * Reads a whole body.
 * @throws DomainError `payload_too_large` beyond `maxBytes`, `timeout` when the caller is too slow,
 * `unavailable` when the memory budget is used up. `invalid_request` when the caller leaves or sends too many
 * tiny chunks.
 */
export function readBody(exchange: Exchange, maxBytes: number): Buffer | Promise<Buffer> {
  const { request, message, log } = exchange;
  message.sendContinue();
  if (request.complete) {
    // The whole body has already arrived. This is usual when the caller's key was read from a store, because the
    // head and a small body arrive in one packet.
    const pieces: Buffer[] = [];
    // Up to Node 24 one call of read returns all pieces. From Node 26 on it returns a single piece.
    for (let piece = request.read() as Buffer | null; piece !== null; piece = request.read() as Buffer | null)
      pieces.push(piece);
    const body = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    log.bytesIn = body.length;
    if (body.length > maxBytes) throw tooLarge(maxBytes);
    return body;
  }
  return new Promise((resolve, reject) => {
    const body = new GrowingBuffer(exchange.lease);
    const sizes = new ChunkSizes();
    const finish = (error?: DomainError) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      request.on('error', ignore);
      message.readBy(undefined);
      if (error === undefined) resolve(body.bytes());
      else reject(error);
    };
    const onData = (chunk: Buffer) => {
      log.bytesIn += chunk.length;
      if (log.bytesIn > maxBytes) return finish(tooLarge(maxBytes));
      if (!sizes.count(chunk.length)) return finish(chunksTooSmall());
      try {
        body.append(chunk);
      } catch (error) {
        finish(error as DomainError);
      }
    };
    const onEnd = () => finish();
    const onClose = () => finish(left());
    const timer = setTimeout(() => finish(tooSlow()), exchange.limits.bodyMs);
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
    message.readBy(finish);
  });
}

function ignore(): void {}

export function tooLarge(maxBytes: number): DomainError {
  return new DomainError('payload_too_large', `The body must be at most ${maxBytes} bytes.`, {
    reason: 'body_too_large',
  });
}

/** Returns the error for a file beyond its limit. Boundaries, headers and fields of a form do not count. */
export function fileTooLarge(maxBytes: number): DomainError {
  return new DomainError('payload_too_large', `The file must be at most ${maxBytes} bytes.`, {
    reason: 'body_too_large',
  });
}

export function tooSlow(): DomainError {
  return new DomainError('timeout', 'The body did not arrive in time.', { reason: 'client_too_slow' });
}

/** Returns the error for a body that is not the one that the caller signed. */
export function bodyNotSigned(): DomainError {
  return new DomainError('forbidden', 'The body does not match the signed Content-Digest.', {
    reason: 'signature_invalid',
  });
}

/** Returns the error for a caller that has left. Only the log shows it. */
export function left(): DomainError {
  return new DomainError('invalid_request', 'The connection ended before the body was complete.', {
    reason: 'upload_aborted',
  });
}
