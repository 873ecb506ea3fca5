/** The partner SDK: for servers, on Node alone, without dependencies. */
export type { Asset } from './asset.js';
export { createClient, type AssetOptions, type Client, type PageOptions, type ProofFilter, type UploadOptions, type VerifyFileOptions } from './client.js';
export type { CallOptions, ClientOptions } from './connection.js';
export { TakemarkError, type ClientErrorCode } from './errors.js';
export type { RetryPolicy } from './retry.js';
export type { RotateOptions, Rotation, RotationState, RotationStore } from './rotation.js';
export type { AudioInput } from './source.js';
export type { Progress } from './transport.js';
export type * from './types.js';
