import { z } from 'zod';
import { PRODUCT_EVENTS } from '../../domain/product-event.js';
import { timestampSchema } from '../primitives.js';

/** The state and build of the service (rule 13.3). */
export const healthSchema = z
  .object({
    ok: z.boolean().meta({ description: 'True if the service is up.' }),
    version: z.string().meta({ description: 'Version of the service.' }),
    commit: z.string().meta({ description: 'Commit that the service was built from.' }),
    deployedAt: timestampSchema.meta({ description: 'Deployment time, in unix seconds.' }),
    environment: z.string().meta({ description: '`production` or `beta`.' }),
    contract: z.string().meta({ description: 'Version of the API contract.' }),
  })
  .meta({
    id: 'Health',
    examples: [
      {
        ok: true,
        version: '1.0.0',
        commit: '3f1c0de',
        deployedAt: 1_767_225_600,
        environment: 'production',
        contract: '3.0.0',
      },
    ],
  });

/** The request headers of a page. */
export const pageHeadersSchema = z
  .object({
    'if-none-match': z
      .string()
      .meta({ description: 'List of ETags. The response is 304 if the current ETag is in the list.' })
      .exactOptional(),
  })
  .meta({ examples: [{}] });

/** The name of a script of the page at `/docs`. */
export const docsFileParamsSchema = z
  .strictObject({
    file: z
      .string()
      .regex(/^[a-z]{1,16}-[0-9a-f]{16}\.js$/, 'must be the name of a script of this page')
      .meta({ description: 'Name of the script, as the page gives it.' }),
  })
  .meta({ examples: [{ file: 'start-0123456789abcdef.js' }] });

/**
 * The schema of a probe. Only `/readyz` has `missing`, and only `/readyz` of a process that issues has `issuing`
 * (rule 16.7).
 */
export const probeSchema = z
  .object({
    ok: z.boolean().meta({ description: 'Always true.' }),
    missing: z
      .array(z.string().meta({ description: 'Name of a dependency.' }))
      .meta({
        description:
          'Only in `/readyz`: what does not answer, `bucket` or `kafka`. The process serves all calls that do not need it. Absent if nothing is missing.',
      })
      .exactOptional(),
    issuing: z
      .object({
        ok: z.boolean().meta({ description: 'True if the service can issue proofs.' }),
        reason: z
          .string()
          .meta({ description: 'Why the service issues nothing: the reason of the error of issuing.' })
          .exactOptional(),
      })
      .meta({
        description:
          'Only in `/readyz`: whether the service issues. A service that issues nothing verifies, and is ready.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'Probe',
    examples: [
      { ok: true },
      { ok: true, missing: ['bucket'] },
      { ok: true, issuing: { ok: false, reason: 'signer_expired' } },
    ],
  });

/** The schema of a product or platform name in the download table. */
const slugSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'must be 1 to 64 letters, digits, dots, underscores and hyphens, starting with a letter or digit',
  );

export const downloadQuerySchema = z
  .strictObject({
    product: slugSchema.meta({ description: 'Product slug that you were given at onboarding.' }),
    platform: slugSchema.meta({ description: 'Platform slug, such as `macos`.' }),
  })
  .meta({ id: 'DownloadQuery', examples: [{ product: 'companion', platform: 'macos' }] });

/** The schema of a telemetry report, which contains only counts (rule 13.5). */
export const telemetrySchema = z
  .strictObject({
    events: z
      .array(
        z.strictObject({
          name: z.enum(PRODUCT_EVENTS).meta({ description: 'Name of the event, from a closed list.' }),
          count: z.int().min(1).max(1_000_000).meta({ description: 'How often the event happened.' }),
          at: timestampSchema.meta({ description: 'Time of the events, in unix seconds.' }),
        }),
      )
      .min(1)
      .max(100)
      .meta({ description: 'Event counts. The service accepts either all entries or none.' }),
  })
  .meta({
    id: 'Telemetry',
    examples: [{ events: [{ name: PRODUCT_EVENTS[0], count: 1, at: 1_767_225_600 }] }],
  });

export const telemetryAcceptedSchema = z
  .object({ accepted: z.int().min(0).meta({ description: 'Number of accepted entries.' }) })
  .meta({ id: 'TelemetryAccepted', examples: [{ accepted: 1 }] });

/** The schema of the contract's own document. It is loose and does not repeat OpenAPI's schema. */
export const documentSchema = z
  .looseObject({
    openapi: z.string().meta({ description: 'OpenAPI version.' }),
    info: z.looseObject({}).meta({ description: 'Title and version of the contract.' }),
    paths: z.looseObject({}).meta({ description: 'Operations by path.' }),
  })
  .meta({ id: 'OpenApiDocument', examples: [{ openapi: '3.1.1', info: {}, paths: {} }] });
