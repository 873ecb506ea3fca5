/**
 * Calls every operation through the generated types, and prints what it read of each answer as a line of
 * JSON.
 */
import { readFile } from 'node:fs/promises';
import type { operations } from './api.js';

type Operation = keyof operations;
type Body<Responses, Status extends keyof Responses> = Responses[Status] extends {
  content: { 'application/json': infer Content };
}
  ? Content
  : never;
export type AnswerOf<Name extends Operation> = Body<
  operations[Name]['responses'],
  keyof operations[Name]['responses'] & (200 | 201 | 202)
>;
type RequestOf<Name extends Operation> = Content<Exclude<operations[Name]['requestBody'], undefined>>;
type Content<Body> = [Body] extends [{ content: { 'application/json': infer Sent } }]
  ? [Body] extends [never]
    ? undefined
    : Sent
  : undefined;
type FieldsOf<Name extends 'postUpload' | 'verifyFile'> = Omit<
  NonNullable<operations[Name]['requestBody']>['content']['multipart/form-data'],
  'file'
>;
/** The errors of every operation have one shape. */
export type Refusal<Status extends 400 | 429> = Body<operations['verify']['responses'], Status>;

const url = process.argv[2]!;
const song = new Blob([await readFile(process.argv[3]!)]);

async function ask<Name extends Operation>(
  name: Name,
  method: string,
  path: string,
  body: RequestOf<Name>,
  { base = url, form }: { readonly base?: string; readonly form?: FormData } = {},
): Promise<AnswerOf<Name>> {
  const response = await fetch(`${base}${path}`, {
    method,
    headers: { 'x-api-key': 'key', ...(form === undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(form !== undefined && { body: form }),
  });
  const answer = await response.json();
  const place = base.slice(url.length + 1);
  const call = place === '' ? name : `${name} ${place}`;
  console.log(JSON.stringify({ call, status: response.status, body: answer }));
  return answer as AnswerOf<Name>;
}

const verification = await ask('verify', 'POST', '/v1/verify', { uploadId: 'upl_1' });
/** Compiles only if the verdict can be any text. */
function meaning(verdict: typeof verification.verdict): string {
  switch (verdict) {
    case 'valid':
      return 'accepted';
    default:
      return verdict.toUpperCase();
  }
}
meaning('a verdict of another year');
await ask('verify', 'POST', '/v1/verify', { uploadId: 'upl_1' }, { base: `${url}/400` });
await ask('verify', 'POST', '/v1/verify', { uploadId: 'upl_1' }, { base: `${url}/429` });
await ask('identify', 'POST', '/v1/recordings/identify', { uploadId: 'upl_1' });
const digests = [{ sha256: '0'.repeat(64) }];
await ask('identify', 'POST', '/v1/recordings/identify', { digests }, { base: `${url}/digests` });
await ask('createUpload', 'POST', '/v1/uploads', { purpose: 'verify' });
/** Returns the form of an operation: all text members of its type, and then the file. */
function formOf<Name extends 'postUpload' | 'verifyFile'>(fields: FieldsOf<Name>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
  form.set('file', song, 'song.wav');
  return form;
}
const fields = { policy: 'given', signature: 'given' };
await ask('postUpload', 'POST', '/uploads/upl_1', undefined, { form: formOf<'postUpload'>(fields) });
await ask('verifyFile', 'POST', '/v1/verifications', undefined, { form: formOf<'verifyFile'>({}) });
await ask('readRecord', 'GET', '/v1/records/prf_1', undefined);
await ask('listProofs', 'GET', '/v1/proofs?include=evidenceReport', undefined);
await ask('readProof', 'GET', '/v1/proofs/prf_1', undefined);
await ask('eraseProof', 'DELETE', '/v1/proofs/prf_1', undefined);
await ask('listKeys', 'GET', '/v1/partner/keys', undefined);
await ask('rotateKey', 'POST', '/v1/partner/keys/rotate', undefined);
await ask('revokeOwnKey', 'DELETE', '/v1/partner/keys/key_1', undefined);
await ask('readUsage', 'GET', '/v1/partner/usage', undefined);
const bindings = { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' };
await ask('createReview', 'POST', '/v1/partner/reviews', { proofId: 'prf_1', bindings });
await ask('listReviews', 'GET', '/v1/partner/reviews', undefined);
await ask('readReview', 'GET', '/v1/partner/reviews/rev_1', undefined);
const requests = '/v1/partner/reviews/rev_1/evidence-requests';
await ask('openEvidence', 'POST', requests, { kind: 'source_licence' });
await ask('closeEvidence', 'PATCH', `${requests}/req_1`, { status: 'accepted' });
await ask('resolveReview', 'POST', '/v1/partner/reviews/rev_1/resolve', { outcome: 'accepted' });
await ask('sandboxFixtures', 'GET', '/v1/sandbox/fixtures', undefined);
await ask('telemetry', 'POST', '/v1/telemetry', {
  events: [{ name: 'app_started', count: 1, at: 1_767_225_600 }],
});
await ask('health', 'GET', '/v1/health', undefined);
