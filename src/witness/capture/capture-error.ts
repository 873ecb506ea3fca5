/** An error of the library, with a message for the author of an agent. */
export class CaptureError extends Error {
  override readonly name = 'CaptureError';
}
