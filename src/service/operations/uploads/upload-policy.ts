import { createHmac, timingSafeEqual } from 'node:crypto';
import { shownName } from '../../../core/domain/display-name.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { Secrets } from '../../ports/secrets.js';

/** The policy that a slot's form fields sign. */
export interface UploadPolicy {
  readonly uploadId: string;
  readonly maxBytes: number;
  /** The time of expiry in unix seconds. */
  readonly expiresAt: number;
}

export interface UploadPolicySigner {
  sign(policy: UploadPolicy): Readonly<Record<string, string>>;
  /**
   * Checks the form fields of a post.
   * @throws DomainError `invalid_request` for a missing or unknown field, `forbidden` for an altered or
   * expired one
   */
  check(uploadId: string, fields: ReadonlyMap<string, string>, now: number): UploadPolicy;
}

/** The names of the signed fields. A form must have all of them and no other. */
export const SIGNED_FIELDS = ['policy', 'signature'] as const;

export function createUploadPolicySigner(secrets: Secrets, environment: string): UploadPolicySigner {
  const mac = (key: Uint8Array, policy: string): Buffer =>
    createHmac('sha256', key).update(`takemark upload policy ${environment} ${policy}`).digest();
  return {
    sign({ uploadId, maxBytes, expiresAt }) {
      const { id, key } = secrets.current('upload-policy');
      const policy = Buffer.from(JSON.stringify([id, uploadId, maxBytes, expiresAt])).toString('base64url');
      return { policy, signature: mac(key, policy).toString('base64url') };
    },
    check(uploadId, fields, now) {
      for (const name of fields.keys()) {
        if (!(SIGNED_FIELDS as readonly string[]).includes(name))
          throw new DomainError(
            'invalid_request',
            `The form has the field ${shownName(name)}, which does not belong to the upload slot.`,
            { reason: 'form_field_unknown' },
          );
      }
      const missing = SIGNED_FIELDS.filter((name) => !fields.has(name)).map(shownName);
      if (missing.length > 0)
        throw new DomainError(
          'invalid_request',
          `The form lacks ${missing.join(' and ')} before the file. Send every entry of \`fields\` first.`,
          { reason: 'form_field_missing' },
        );
      const [policy, signature] = SIGNED_FIELDS.map((name) => fields.get(name)!) as [string, string];
      const altered = () =>
        new DomainError('forbidden', 'The policy or signature does not match this upload slot.', {
          reason: 'form_policy_invalid',
        });
      const [secretId, signedId, maxBytes, expiresAt] = decode(policy) ?? [];
      const secret = secretId === undefined ? undefined : secrets.find('upload-policy', secretId);
      if (secret === undefined || signedId === undefined || maxBytes === undefined || expiresAt === undefined)
        throw altered();
      // Compared as text, because base64 decoding ignores stray bits and would accept other spellings of the
      // signature.
      const expected = Buffer.from(mac(secret.key, policy).toString('base64url'));
      const sent = Buffer.from(signature);
      if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) throw altered();
      if (signedId !== uploadId) throw altered();
      if (now >= expiresAt)
        throw new DomainError('forbidden', 'The slot has expired. Request a new one.', {
          reason: 'form_policy_expired',
        });
      return { uploadId, maxBytes, expiresAt };
    },
  };
}

function decode(policy: string): [string, string, number, number] | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(policy, 'base64url').toString());
    if (!Array.isArray(value) || value.length !== 4) return undefined;
    const [secretId, uploadId, maxBytes, expiresAt] = value as unknown[];
    return typeof secretId === 'string' &&
      typeof uploadId === 'string' &&
      typeof maxBytes === 'number' &&
      typeof expiresAt === 'number'
      ? [secretId, uploadId, maxBytes, expiresAt]
      : undefined;
  } catch {
    return undefined;
  }
}
