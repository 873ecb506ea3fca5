/**
 * Makes the bucket, and writes and deletes one object, using only an HTTP client and signature version 2.
 */
import { createHmac } from 'node:crypto';

const OBJECT = 'probe/ready';
const BUCKET_IS_THERE = 409;

/** @param {{ endpoint: string, accessKey: string, secretKey: string, bucket: string }} store */
export async function writeObject(store) {
  await call(store, 'PUT', `/${store.bucket}`, undefined, [BUCKET_IS_THERE]);
  await call(store, 'PUT', `/${store.bucket}/${OBJECT}`, 'ready');
  await call(store, 'DELETE', `/${store.bucket}/${OBJECT}`);
}

async function call({ endpoint, accessKey, secretKey }, method, path, body, alsoFine = []) {
  const date = new Date().toUTCString();
  const type = body === undefined ? '' : 'text/plain';
  const signature = createHmac('sha1', secretKey)
    .update([method, '', type, date, path].join('\n'))
    .digest('base64');
  const answer = await fetch(endpoint + path, {
    method,
    headers: {
      date,
      authorization: `AWS ${accessKey}:${signature}`,
      ...(type === '' ? {} : { 'content-type': type }),
    },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(5000),
  });
  const text = await answer.text();
  if (!answer.ok && !alsoFine.includes(answer.status))
    throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 200)}`);
}
