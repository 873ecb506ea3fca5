import { S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { defined } from '../../../core/domain/defined.js';

/** Where a bucket is, and how it is reached. */
export interface BucketConnection {
  /** Address of the server. Absent: Amazon's, of the region. */
  readonly endpoint?: string;
  readonly region: string;
  readonly bucket: string;
  /**
   * The first part of each object's name. A deliverable's name continues with the proof id. Any other object with this
   * prefix and form counts as a deliverable, and is collected.
   */
  readonly prefix: string;
  /** Absent: what the platform offers, as its workload identity. */
  readonly credentials?: { readonly accessKey: string; readonly secretKey: string };
}

/** How a bucket is reached. */
export type BucketAccess = Pick<BucketConnection, 'endpoint' | 'region' | 'bucket' | 'credentials'>;

const CONNECT_MS = 2000;
/**
 * Milliseconds until the server's response begins. Reading its body has no limit, because partners read as
 * slowly as they like.
 */
const RESPONSE_MS = 10_000;
/** Every download in flight holds one connection. */
const CONNECTIONS = 1024;

/** The library would write to the console by itself, and what it says of a command has the command's input. */
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function nothing(): void {}

export function connectBucket({ region, endpoint, credentials }: BucketAccess): S3Client {
  // The library would print a warning about this Node to stderr. The service has a warning of its own.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
  return new S3Client({
    region,
    logger: SILENT,
    ...defined({ endpoint }),
    ...(credentials === undefined
      ? {}
      : { credentials: { accessKeyId: credentials.accessKey, secretAccessKey: credentials.secretKey } }),
    // Common ground of the stores that call themselves compatible: no host name a bucket, no checksum
    // trailers.
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: RESPONSE_MS,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: CONNECTIONS },
      httpsAgent: { keepAlive: true, maxSockets: CONNECTIONS },
    },
  });
}

/** Returns an option that ends a command, repetitions included, after this time. It does not suit a streamed body. */
export function inTime(milliseconds: number): { readonly abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(milliseconds) };
}

/** Returns the object, or undefined if there is none. */
export async function ifPresent<Value>(found: Promise<Value>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    // A missing bucket is a fault. A HEAD response has no body that shows it; `checkBucket` finds it.
    if (statusOf(error) === 404 && !(error instanceof Error && error.name === 'NoSuchBucket'))
      return undefined;
    throw error;
  }
}

export function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}
