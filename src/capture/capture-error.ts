/** Error of the library, in words for whoever writes an agent. */
export class CaptureError extends Error {
  override readonly name = 'CaptureError';
}
