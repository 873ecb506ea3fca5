/** An error of the library, with a message for the author of an agent. */
export class CaptureError extends Error {
  override readonly name: string = 'CaptureError';
}

/** The error of an event for which the trace has no room. The trace is unchanged: seal it. */
export class TraceFullError extends CaptureError {
  override readonly name = 'TraceFullError';
}
