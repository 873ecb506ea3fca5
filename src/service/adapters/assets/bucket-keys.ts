import { createHash, randomBytes } from 'node:crypto';
import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { CONTENT_KEY_BYTES } from '../../../core/codec/encrypt.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { ContentKeys } from '../../ports/content-keys.js';
import { type BucketConnection, connectBucket, ifPresent, inTime, statusOf } from './bucket-connection.js';
import { checkProofId, guarded } from './failure.js';

export interface BucketKeys extends ContentKeys {
  /** Stores a key that exists elsewhere. @throws DomainError `conflict` if the id has another key */
  store(proofId: string, key: Uint8Array): Promise<void>;
  /** Ends the connections. */
  close(): void;
}

/** The prefix of the keys. No deliverable's name has a slash, so no list of deliverables meets a key. */
const KEYS = 'keys/';
/** The time in milliseconds after which the bucket's answer is given up. */
const ANSWER_MS = 6000;

/**
 * Opens the keys, which are objects of 32 bytes beside the deliverables: `<prefix>keys/<proof id>`. The bucket keeps
 * no versions, so an object that was overwritten is gone. A destroyed key leaves an empty object for good: a request
 * to make the key that was repeated because it hung may come after the destruction, and the object causes its
 * refusal. Processes that make the key of one id at once get one key. Both effects need a server that implements
 * `If-None-Match`. Most servers do, and some ignore it.
 */
export function openBucketKeys(options: BucketConnection): BucketKeys {
  const { bucket, prefix } = options;
  const client = connectBucket(options);
  const object = (proofId: string) => {
    checkProofId(proofId);
    return { Bucket: bucket, Key: prefix + KEYS + proofId };
  };

  const look = async (name: ReturnType<typeof object>): Promise<Uint8Array | 'destroyed' | undefined> => {
    const found = await ifPresent(client.send(new GetObjectCommand(name), inTime(ANSWER_MS)));
    if (found === undefined) return undefined;
    const key = await found.Body?.transformToByteArray();
    return key?.length === CONTENT_KEY_BYTES ? key : 'destroyed';
  };
  const read = async (name: ReturnType<typeof object>): Promise<Uint8Array | undefined> => {
    const found = await look(name);
    return found === 'destroyed' ? undefined : found;
  };
  const write = (name: ReturnType<typeof object>, bytes: Uint8Array, condition: { IfNoneMatch?: '*' } = {}) =>
    client.send(
      new PutObjectCommand({
        ...name,
        ...condition,
        Body: bytes,
        ContentMD5: createHash('md5').update(bytes).digest('base64'),
      }),
      inTime(ANSWER_MS),
    );
  /** @returns false where there is such an object already, or another one is being written */
  const make = async (name: ReturnType<typeof object>, key: Uint8Array): Promise<boolean> => {
    try {
      await write(name, key, { IfNoneMatch: '*' });
      return true;
    } catch (error) {
      const status = statusOf(error);
      if (status === 412 || status === 409) return false;
      throw error;
    }
  };

  return {
    obtain: (proofId) =>
      guarded('bucket', async () => {
        const name = object(proofId);
        const key = randomBytes(CONTENT_KEY_BYTES);
        const found = (await look(name)) ?? ((await make(name, key)) ? key : await look(name));
        if (found === 'destroyed') throw new DomainError('conflict', 'This id is taken.');
        if (found === undefined) throw new Error('the content key is being created');
        return found;
      }),

    read: (proofId) => guarded('bucket', () => read(object(proofId))),

    store: (proofId, key) =>
      guarded('bucket', async () => {
        const name = object(proofId);
        if (await make(name, key)) return;
        const found = await read(name);
        if (found === undefined || Buffer.compare(found, key) !== 0)
          throw new DomainError('conflict', 'This id is taken.');
      }),

    destroy: (proofId) =>
      guarded('bucket', async () => {
        const name = object(proofId);
        // Also where there is none: another process may be about to write it.
        await write(name, new Uint8Array());
        if ((await look(name)) !== 'destroyed')
          throw new Error('the bucket still returns the overwritten content key');
      }),

    release: (proofId) =>
      guarded('bucket', async () => {
        await client.send(new DeleteObjectCommand(object(proofId)), inTime(ANSWER_MS));
      }),

    close: () => client.destroy(),
  };
}
