import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { defined } from '../../domain/defined.js';
import { EVIDENCE_PARTS, type EvidencePart } from '../../domain/evidence.js';
import { formatIdentifier, IDENTIFIER_PATTERN } from '../../domain/identifiers.js';
import type { AssetStore, StagedAsset } from '../../ports/assets.js';
import { checkProofId, guarded } from './failure.js';
import { SpoolFile } from './spool-file.js';

export interface AssetBucketOptions {
  /** Address of the server. Absent: Amazon's, of the region. */
  readonly endpoint?: string;
  readonly region: string;
  readonly bucket: string;
  /**
   * First part of each object's name, before the proof id. Whatever else begins with the prefix and could be
   * an asset's name is taken for one, and collected.
   */
  readonly prefix: string;
  /** Absent: what the platform offers, as its workload identity. */
  readonly credentials?: { readonly accessKey: string; readonly secretKey: string };
  /** Directory on this machine in which an asset is built before it is sent. */
  readonly spoolDirectory: string;
  /** Age from which an asset that nobody registered is collected. Longer than any issuing takes. */
  readonly orphanGraceSeconds: number;
  /**
   * Age by its id up to which an asset is looked at: an older one was seen by many collections. Absent: all
   * are looked at.
   */
  readonly orphanWindowSeconds?: number;
}

export interface AssetBucket extends AssetStore {
  /** Ends the connections. */
  close(): void;
}

/**
 * Mark before a part's name. It is in no id, and no slash: stores that keep objects as files cannot have one below
 * another.
 */
const PART_MARK = '!';
const CONNECT_MS = 2000;
/**
 * Milliseconds until the server's response begins. Reading its body has no limit, because partners read as
 * slowly as they like.
 */
const RESPONSE_MS = 10_000;
/** Milliseconds until a whole asset is taken. */
const PUT_MS = 120_000;
const PUT_ATTEMPTS = 3;
/** Every download in flight holds one connection. */
const CONNECTIONS = 1024;
/** Failures that one collection bears: a store that does not answer fails at every object. */
const MAX_FAILURES = 20;
const REMOVED_AT_ONCE = 16;

/**
 * Assets in a bucket of an S3-compatible store, `<prefix><proof id>` each and parts of evidence as
 * `<prefix><proof id>!<part>`, for any number of processes.
 * An asset is built in a local file, because parts of it are overwritten at the end, and sent as one
 * object, which is all there or not there. The bucket must keep no versions: what was erased would live on in
 * them. Failures are DomainError `unavailable` / `store_unavailable`; one in the middle of a read is an error
 * of its stream.
 * @throws Error where the bucket keeps versions; DomainError where it cannot be reached
 */
export async function openAssetBucket(options: AssetBucketOptions): Promise<AssetBucket> {
  const { bucket, prefix, credentials, spoolDirectory } = options;
  await mkdir(spoolDirectory, { recursive: true, mode: 0o700 });
  const client = new S3Client({
    region: options.region,
    ...defined({ endpoint: options.endpoint }),
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
  const object = (proofId: string, part?: EvidencePart) => {
    checkProofId(proofId);
    return { Bucket: bucket, Key: prefix + proofId + (part === undefined ? '' : PART_MARK + part) };
  };
  const sizeOf = async (name: { readonly Bucket: string; readonly Key: string }) =>
    (await ifPresent(client.send(new HeadObjectCommand(name))))?.ContentLength;

  async function put(
    name: { readonly Bucket: string; readonly Key: string },
    spool: SpoolFile,
  ): Promise<void> {
    const md5 = createHash('md5');
    for await (const chunk of spool.read()) md5.update(chunk as Uint8Array);
    // The server compares: a body that was damaged on its way is refused.
    const content = { ContentLength: spool.length, ContentMD5: md5.digest('base64') };
    for (let attempt = 1; ; attempt += 1) {
      const body = spool.read();
      try {
        await client.send(new PutObjectCommand({ ...name, ...content, Body: body }), {
          requestTimeout: PUT_MS,
        });
        break;
      } catch (error) {
        // The client repeats nothing that has a stream for a body: it would send the rest of it.
        if (attempt === PUT_ATTEMPTS || !isTransient(error)) throw error;
      } finally {
        body.destroy();
      }
    }
    if ((await sizeOf(name)) !== spool.length) throw new Error('the store does not have what it took');
  }

  async function remove(name: { readonly Bucket: string; readonly Key: string }): Promise<void> {
    await client.send(new DeleteObjectCommand(name));
    if ((await sizeOf(name)) !== undefined) throw new Error('the store still has what it deleted');
  }

  await checkBucket(client, bucket);
  return {
    stage: (proofId, part) =>
      guarded(async () => {
        const name = object(proofId, part);
        return new StagedObject(await SpoolFile.open(spoolDirectory), (spool) => put(name, spool));
      }),

    read: (proofId, range, part) =>
      guarded(async () => {
        try {
          const found = await ifPresent(
            client.send(
              new GetObjectCommand({
                ...object(proofId, part),
                ...defined({ Range: range && `bytes=${range.start}-${range.end}` }),
              }),
            ),
          );
          return found?.Body as Readable | undefined;
        } catch (error) {
          if (statusOf(error) === 416) return Readable.from([]);
          throw error;
        }
      }),

    size: (proofId, part) => guarded(async () => sizeOf(object(proofId, part))),

    delete: (proofId) =>
      guarded(async () => {
        const name = object(proofId);
        const wasThere = (await sizeOf(name)) !== undefined;
        // Also where it was not there: another process may be writing it, and what was asked for is that it
        // is gone.
        await remove(name);
        const parts = await client.send(
          new ListObjectsV2Command({ Bucket: bucket, Prefix: name.Key + PART_MARK }),
        );
        for (const { Key: key } of parts.Contents ?? [])
          if (key !== undefined) await remove({ Bucket: bucket, Key: key });
        return wasThere;
      }),

    collectOrphans: (keep) =>
      guarded(async () => {
        const youngest = Date.now() - options.orphanGraceSeconds * 1000;
        const { orphanWindowSeconds: window } = options;
        // Ids go with time.
        const start =
          window === undefined
            ? {}
            : {
                StartAfter:
                  prefix + formatIdentifier('proof', Date.now() - window * 1000, new Uint8Array(10)),
              };
        let collected = 0;
        const failures: unknown[] = [];
        let after: string | undefined;
        do {
          const page = await client.send(
            new ListObjectsV2Command({
              Bucket: bucket,
              Prefix: prefix,
              ...(after === undefined ? start : { ContinuationToken: after }),
            }),
          );
          // Without a time nothing is known of its age: it stays. Other names are not ours: the folder that a
          // console shows, say.
          const names = (page.Contents ?? []).flatMap(({ Key: key, LastModified: modified }) =>
            key === undefined ||
            modified === undefined ||
            modified.getTime() > youngest ||
            proofIdOf(key.slice(prefix.length)) === undefined
              ? []
              : [key],
          );
          for (let first = 0; first < names.length; first += REMOVED_AT_ONCE) {
            const part = names.slice(first, first + REMOVED_AT_ONCE);
            const results = await Promise.allSettled(
              part.map(async (key) => {
                if (await keep(proofIdOf(key.slice(prefix.length)) ?? '')) return 0;
                await remove({ Bucket: bucket, Key: key });
                return 1;
              }),
            );
            for (const result of results) {
              if (result.status === 'fulfilled') collected += result.value;
              else failures.push(result.reason);
            }
            if (failures.length >= MAX_FAILURES) throw failures[0];
          }
          after = page.NextContinuationToken;
        } while (after !== undefined);
        if (failures.length > 0) throw failures[0];
        return collected;
      }),

    close: () => client.destroy(),
  };
}

/** Proof of an object's name behind the prefix; undefined for a name that is not ours. */
function proofIdOf(name: string): string | undefined {
  const [proofId = '', part, ...more] = name.split(PART_MARK);
  const known = part === undefined || EVIDENCE_PARTS.some((each) => each === part);
  return known && more.length === 0 && IDENTIFIER_PATTERN.test(proofId) ? proofId : undefined;
}

class StagedObject implements StagedAsset {
  readonly #spool: SpoolFile;
  readonly #put: (spool: SpoolFile) => Promise<void>;

  constructor(spool: SpoolFile, put: (spool: SpoolFile) => Promise<void>) {
    this.#spool = spool;
    this.#put = put;
  }

  append(chunk: Uint8Array): Promise<void> {
    return guarded(() => this.#spool.append(chunk));
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > this.#spool.length)
      throw new RangeError('patch outside of what was appended');
    await guarded(() => this.#spool.patch(offset, bytes));
  }

  read(): Readable {
    return this.#spool.read();
  }

  publish(): Promise<void> {
    return guarded(async () => {
      await this.#put(this.#spool);
      await this.#spool.close();
    });
  }

  /** Nothing after `publish`; safe any number of times. An upload that failed half-way left no object. */
  async discard(): Promise<void> {
    await this.#spool.close().catch(() => undefined);
  }
}

/** Checks that the bucket is there, that the key is accepted, and that no versions are kept. */
async function checkBucket(client: S3Client, bucket: string): Promise<void> {
  const versioning = await guarded(async () => {
    await client.send(new HeadBucketCommand({ Bucket: bucket }));
    try {
      return await client.send(new GetBucketVersioningCommand({ Bucket: bucket }));
    } catch (error) {
      // A store that has no such question keeps no versions.
      if (statusOf(error) === 501) return undefined;
      throw error;
    }
  });
  if (versioning?.Status !== undefined)
    throw new Error(`bucket ${bucket} keeps versions: an erased deliverable would live on in them`);
}

async function ifPresent<Value>(found: Promise<Value>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    // A missing bucket is a fault. HEAD has no body to tell it by; `checkBucket` has.
    if (statusOf(error) === 404 && !(error instanceof Error && error.name === 'NoSuchBucket'))
      return undefined;
    throw error;
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/**
 * True where the same request may succeed when it is repeated: the store was not reached, or says that it is
 * the one to blame.
 */
function isTransient(error: unknown): boolean {
  const status = statusOf(error);
  return status === undefined || status >= 500 || status === 429;
}
