import {
  GetBucketVersioningCommand,
  GetObjectLockConfigurationCommand,
  HeadBucketCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { withDeadline } from '../../../core/async/deadline.js';
import { checked, passed, type ServerCheck, unchecked } from '../../domain/server-check.js';
import { type BucketAccess, connectBucket, statusOf } from './bucket-connection.js';

const ANSWER_MS = 10_000;
const REACHABLE: Readonly<Record<number, string>> = {
  403: 'the credentials were refused, or do not allow access to the bucket',
  404: 'no such bucket',
};

/** Looks at the bucket. @returns one check that says so where it cannot be used */
export async function examineBucket(access: BucketAccess): Promise<readonly ServerCheck[]> {
  const client = connectBucket(access);
  const wanted = 'a bucket that exists and accepts the credentials';
  try {
    const refused = await answered(client.send(new HeadBucketCommand({ Bucket: access.bucket }))).then(
      () => undefined,
      (error: unknown) => REACHABLE[statusOf(error) ?? 0] ?? 'no answer',
    );
    if (refused !== undefined)
      return [checked('s3.reachable', { found: refused, wanted }, 'refuse', 'no other check could run')];
    return [
      passed('s3.reachable', 'yes', wanted),
      await versioningCheck(client, access.bucket),
      await lockCheck(client, access.bucket),
    ];
  } finally {
    client.destroy();
  }
}

async function versioningCheck(client: S3Client, bucket: string): Promise<ServerCheck> {
  const wanted = 'never enabled';
  try {
    const { Status: status } = await answered(
      client.send(new GetBucketVersioningCommand({ Bucket: bucket })),
    );
    return versioningOf(status);
  } catch (error) {
    // A store that has no such question keeps no versions.
    if (statusOf(error) === 501)
      return passed('s3.versioning', 'this store does not support the question', wanted);
    return unchecked('s3.versioning', wanted, 'this user needs s3:GetBucketVersioning');
  }
}

/** @param status as the server says it; undefined where versions were never kept */
export function versioningOf(status: string | undefined): ServerCheck {
  return checked(
    's3.versioning',
    { found: status ?? 'never enabled', wanted: 'never enabled' },
    'refuse',
    status === undefined ? undefined : 'an erased file would survive as an old version',
  );
}

async function lockCheck(client: S3Client, bucket: string): Promise<ServerCheck> {
  const wanted = 'off';
  try {
    const { ObjectLockConfiguration: lock } = await answered(
      client.send(new GetObjectLockConfigurationCommand({ Bucket: bucket })),
    );
    // Some stores pass over what they do not know in a question, and list the bucket instead. The client makes an empty
    // configuration of such a list, or none where the bucket is empty; S3 itself says 404 where nothing is locked.
    const enabled = lock?.ObjectLockEnabled;
    if (enabled === undefined)
      return unchecked('s3.object_lock', wanted, 'this store answered a different question');
    return lockOf(enabled);
  } catch (error) {
    // No configuration, or a store without such a thing.
    if ([404, 501].includes(statusOf(error) ?? 0)) return passed('s3.object_lock', 'off', wanted);
    return unchecked('s3.object_lock', wanted, 'this user needs s3:GetBucketObjectLockConfiguration');
  }
}

/** @param enabled as the server says it */
export function lockOf(enabled: string): ServerCheck {
  return checked(
    's3.object_lock',
    { found: enabled, wanted: 'off' },
    'refuse',
    'a locked object cannot be erased',
  );
}

function answered<Value>(work: Promise<Value>): Promise<Value> {
  return withDeadline(work, ANSWER_MS, () => {
    throw new Error('no answer');
  });
}
