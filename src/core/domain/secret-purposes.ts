/** The purposes of the service's symmetric secrets. Each purpose has its own secret. */
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
