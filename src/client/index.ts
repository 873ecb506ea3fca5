/** The partner SDK: for servers, on Node alone, without dependencies. */
export { createClient, type CallOptions, type Client, type ClientOptions, type UploadOptions, type VerifyFileOptions } from './client.js';
export { TakemarkError, type ClientErrorCode } from './errors.js';
export type { RetryPolicy } from './retry.js';
export type { AudioInput } from './source.js';
export type { Progress } from './transport.js';
export type * from './types.js';
