/** Uses that the service has for symmetric secrets: each has a secret of its own. */
export const SECRET_PURPOSES = [
  'key-pepper',
  'upload-policy',
  'cursor',
  'rotation',
  'audit',
  'event',
  'row',
] as const;
export type SecretPurpose = (typeof SECRET_PURPOSES)[number];
