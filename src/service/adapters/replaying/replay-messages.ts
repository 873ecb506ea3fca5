import type { ErrorCode, ErrorReason } from '../../../core/domain/errors.js';
import type { Replayed } from '../../../witness/replay/replay-trace.js';

/** The messages of the thread: it asks for the next chunk of a stream, or reports the end of the replay. */
export type FromReplay =
  | { readonly kind: 'read'; readonly stream: number }
  | { readonly kind: 'replayed'; readonly replayed: Replayed }
  | {
      readonly kind: 'refused';
      readonly code: ErrorCode;
      readonly message: string;
      readonly reason?: ErrorReason;
    }
  | { readonly kind: 'failed'; readonly message: string };

/** The chunk that was asked for; undefined at the stream's end. */
export interface ToReplay {
  readonly chunk: Uint8Array | undefined;
}
