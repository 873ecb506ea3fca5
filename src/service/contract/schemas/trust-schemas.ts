import { z } from 'zod';
import { REVOCATION_REASONS } from '../../../core/domain/signer-revocation.js';
import { DEVICE_ALGORITHMS } from '../../../witness/domain/trace.js';
import { countSchema, knownWords, queryInteger, sha256Schema, timestampSchema } from '../primitives.js';

const KID = '5c77d7fd8f51ed0c2a913e46326ff6d2ea2e95c8ecf1667c72eb72ccc3fc2b46';
const SIGNER = {
  kid: KID,
  algorithm: 'Ed25519',
  issuer: 'Takemark',
  notBefore: 1_767_139_200,
  notAfter: 2_398_291_200,
  signs: true,
};

export const signerParamsSchema = z
  .strictObject({ kid: sha256Schema.meta({ description: 'SHA-256 of the certificate (DER).' }) })
  .meta({ examples: [{ kid: KID }] });

const DEVICE_ID = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const DEVICE = { deviceId: DEVICE_ID, algorithm: 'Ed25519', enrolledAt: 1_767_225_600 };

export const deviceParamsSchema = z
  .strictObject({ deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key." }) })
  .meta({ examples: [{ deviceId: DEVICE_ID }] });

/** A capture device. It has no name, only the digest of its public key. */
export const enrolDeviceSchema = z
  .strictObject({
    deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key (SPKI in DER)." }),
    algorithm: z
      .enum(DEVICE_ALGORITHMS)
      .meta({ description: "Algorithm of the device's key." })
      .exactOptional(),
  })
  .meta({ id: 'EnrolDevice', examples: [{ deviceId: DEVICE_ID, algorithm: 'Ed25519' }] });

export const revokeDeviceSchema = z
  .strictObject({
    from: timestampSchema
      .meta({ description: 'When the revocation takes effect, in unix seconds. The default is now.' })
      .exactOptional(),
  })
  .meta({ id: 'RevokeDevice', examples: [{}, { from: 1_767_225_600 }] });

export const deviceSchema = z
  .object({
    deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key." }),
    algorithm: z
      .string()
      .meta({ description: "Algorithm of the device's key, if given at enrolment." })
      .exactOptional(),
    enrolledAt: timestampSchema.meta({ description: 'Enrolment time, in unix seconds.' }),
    revocation: z
      .object({
        from: timestampSchema.meta({ description: 'When the revocation takes effect, in unix seconds.' }),
        at: timestampSchema.meta({
          description: 'When the operator recorded the revocation, in unix seconds.',
        }),
      })
      .meta({
        description:
          'The revocation of the device, which is permanent. Absent if the device was not revoked.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'Device',
    examples: [DEVICE],
  });

/** A range of the devices, numbered from 1 in the order of enrolment. */
export const devicesQuerySchema = z
  .strictObject({
    from: queryInteger(1, 1_000_000).default(1).meta({
      description:
        'Number of the first device to return. The device that was enrolled first has the number 1.',
    }),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Maximum number of devices to return.' }),
  })
  .meta({ id: 'DevicesQuery', examples: [{}, { from: 101, limit: 100 }] });

export const deviceListSchema = z
  .object({
    devices: z.array(deviceSchema).meta({ description: 'Devices in the order of enrolment.' }),
    deviceCount: countSchema.meta({ description: 'Number of all devices.' }),
  })
  .meta({
    id: 'DeviceList',
    examples: [
      {
        devices: [DEVICE],
        deviceCount: 1,
      },
    ],
  });

export const revokeSignerSchema = z
  .strictObject({
    from: timestampSchema.meta({
      description:
        'Start of the revocation, in unix seconds. Proofs registered at or after this time are not accepted.',
    }),
    reason: z.enum(REVOCATION_REASONS).meta({ description: 'Reason for the revocation.' }),
  })
  .meta({ id: 'RevokeSigner', examples: [{ from: 1_767_225_600, reason: 'key_compromise' }] });

/** A signing certificate of the service. `signs` is true for the certificate that signs new proofs. */
export const signerSchema = z
  .object({
    kid: sha256Schema.meta({ description: 'SHA-256 of the certificate (DER).' }),
    algorithm: z.string().meta({ description: 'Signature algorithm.' }),
    issuer: z.string().meta({ description: 'Name of the issuing authority.' }),
    notBefore: timestampSchema.meta({ description: 'Start of validity, in unix seconds.' }),
    notAfter: timestampSchema.meta({ description: 'End of validity, in unix seconds.' }),
    signs: z.boolean().meta({ description: 'True if this certificate signs new proofs.' }),
    revocation: z
      .object({
        from: timestampSchema.meta({
          description:
            'Start of the revocation, in unix seconds. Proofs registered at or after this time are not accepted.',
        }),
        reason: knownWords(REVOCATION_REASONS).meta({ description: 'Reason for the revocation.' }),
        at: timestampSchema.meta({
          description: 'When the operator recorded the revocation, in unix seconds.',
        }),
      })
      .meta({ description: 'The revocation of the certificate. Absent if the certificate is not revoked.' })
      .exactOptional(),
  })
  .meta({
    id: 'Signer',
    examples: [SIGNER],
  });

export const signerListSchema = z
  .object({
    signers: z
      .array(signerSchema)
      .meta({ description: 'Signing certificates. The certificate that signs new proofs is first.' }),
  })
  .meta({
    id: 'SignerList',
    examples: [
      {
        signers: [
          {
            kid: KID,
            algorithm: 'Ed25519',
            issuer: 'Takemark',
            notBefore: 1_767_139_200,
            notAfter: 2_398_291_200,
            signs: true,
          },
        ],
      },
    ],
  });
