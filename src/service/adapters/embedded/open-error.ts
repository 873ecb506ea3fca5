/** An error at the start, for the operator: a directory cannot be served. The message names the directory. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError';
  readonly code: 'in_use' | 'newer_format' | 'not_a_store' | 'unauthenticated' | 'damaged' | 'io_failed';

  constructor(code: StoreOpenError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
