import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../../core/domain/errors.js';
import type { RouteBody } from '../../contract/route.js';
import { formBoundary } from './multipart-framing.js';

// Both accept empty parameters (RFC 9110, 5.6.6).
const JSON_TYPE =
  /^application\/json[ \t]*(?:(?:;[ \t]*)+(?:charset=(?:utf-8|"utf-8")[ \t]*(?:;[ \t]*)*)?)?$/i;
const AUDIO_TYPE = /^(?:audio\/[\w.+-]+|application\/octet-stream)[ \t]*(?:;[ \t]*)*$/i;

/**
 * Returns the Content-Length of the body. Returns 0 without a body and for a chunked body, whose bytes are
 * counted as they are read.
 */
export function declaredLength(request: IncomingMessage): number {
  return Number(request.headers['content-length'] ?? 0);
}

/** Reports whether a body must be empty, because it is optional, is sent in chunks, and has no type. */
export function mustBeEmpty({ headers }: IncomingMessage, body: RouteBody): boolean {
  return (
    body.kind === 'json' &&
    !body.required &&
    headers['transfer-encoding'] !== undefined &&
    headers['content-type'] === undefined
  );
}

export function notJson(): DomainError {
  return new DomainError('unsupported_media_type', 'The body must be application/json.');
}

/**
 * Checks the media type and the presence of a body. Whether a body that must be empty is empty shows when it is read.
 * @throws DomainError `unsupported_media_type`, or `length_required` when a required body is missing
 */
export function checkMediaType(request: IncomingMessage, body: Exclude<RouteBody, { kind: 'none' }>): void {
  const { headers } = request;
  const chunked = headers['transfer-encoding'] !== undefined;
  const present = chunked || declaredLength(request) > 0;
  if (headers['content-encoding'] !== undefined && headers['content-encoding'].toLowerCase() !== 'identity') {
    throw new DomainError('unsupported_media_type', 'The body must not be compressed.');
  }
  const contentType = headers['content-type'];
  switch (body.kind) {
    case 'json':
      // Rule 2.1.
      if (
        present &&
        contentType !== 'application/json' &&
        !JSON_TYPE.test(contentType ?? '') &&
        !mustBeEmpty(request, body)
      )
        throw notJson();
      break;
    case 'form':
    case 'slot':
      formBoundary(contentType);
      break;
    case 'issuing':
      if (/^multipart\//i.test(contentType ?? '')) {
        formBoundary(contentType);
        break;
      }
      if (!AUDIO_TYPE.test(contentType ?? '')) {
        throw new DomainError(
          'unsupported_media_type',
          'The body must be audio, application/octet-stream or multipart/form-data.',
        );
      }
  }
  if (!present && headers['content-length'] === undefined && (body.kind !== 'json' || body.required)) {
    throw new DomainError('length_required', 'The body is missing. Send it with Content-Length or chunked.');
  }
}
