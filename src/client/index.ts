/** The partner SDK for servers. It runs only on Node and has no dependencies. */
export type { Asset } from './asset.js';
export {
  type AssetOptions,
  type Client,
  createClient,
  type PageOptions,
  type ProofFilter,
  type UploadOptions,
  type VerifyFileOptions,
} from './client.js';
export type { CallOptions, ClientOptions } from './connection.js';
export { type ClientErrorCode, TakemarkError } from './errors.js';
export type { ClientHooks, DeprecationNotice, Exchange } from './hooks.js';
export type { RetryPolicy } from './retry.js';
export type { RotateOptions, Rotation, RotationState, RotationStore } from './rotation.js';
export type { AudioInput } from './source.js';
export type { Progress } from './transport.js';
export type * from './types.js';
export { CLIENT_VERSION } from './version.js';
