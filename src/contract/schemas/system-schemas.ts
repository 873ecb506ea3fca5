import { z } from 'zod';
import { PRODUCT_EVENTS } from '../../domain/product-event.js';
import { timestampSchema } from '../primitives.js';

/** State and build of the service (rule 13.3). */
export const healthSchema = z
  .object({
    ok: z.boolean().meta({ description: 'True where the service is up.' }),
    version: z.string().meta({ description: 'Version of the service.' }),
    commit: z.string().meta({ description: 'Commit that it was built from.' }),
    deployedAt: timestampSchema.meta({ description: 'Time of its deployment, in unix seconds.' }),
    environment: z.string().meta({ description: '`production` or `beta`.' }),
    contract: z.string().meta({ description: 'Version of this contract.' }),
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

/** Request headers of a page. */
export const pageHeadersSchema = z
  .object({
    'if-none-match': z.string().meta({ description: '304 where it holds the ETag.' }).exactOptional(),
  })
  .meta({ examples: [{}] });

export const probeSchema = z
  .object({ ok: z.boolean().meta({ description: 'True.' }) })
  .meta({ id: 'Probe', examples: [{ ok: true }] });

/** A name in a path of the download table. */
const slugSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'must be 1 to 64 letters, digits, dots, underscores and hyphens, the first a letter or digit',
  );

export const downloadQuerySchema = z
  .strictObject({
    product: slugSchema.meta({ description: 'Product, as it was named to you.' }),
    platform: slugSchema.meta({ description: 'Platform, as `macos`.' }),
  })
  .meta({ id: 'DownloadQuery', examples: [{ product: 'companion', platform: 'macos' }] });

/** A report of counts (rule 13.5). */
export const telemetrySchema = z
  .strictObject({
    events: z
      .array(
        z.strictObject({
          name: z.enum(PRODUCT_EVENTS).meta({ description: 'Name of what is counted, of a closed list.' }),
          count: z.int().min(1).max(1_000_000).meta({ description: 'Count of the event.' }),
          at: timestampSchema.meta({ description: 'Time, in unix seconds.' }),
        }),
      )
      .min(1)
      .max(100)
      .meta({ description: 'Counts; all of a report are taken, or none.' }),
  })
  .meta({
    id: 'Telemetry',
    examples: [{ events: [{ name: PRODUCT_EVENTS[0], count: 1, at: 1_767_225_600 }] }],
  });

export const telemetryAcceptedSchema = z
  .object({ accepted: z.int().min(0).meta({ description: 'Entries that were taken.' }) })
  .meta({ id: 'TelemetryAccepted', examples: [{ accepted: 1 }] });

/** The contract's own document, without OpenAPI's schema. */
export const documentSchema = z
  .looseObject({
    openapi: z.string().meta({ description: 'Version of OpenAPI.' }),
    info: z.looseObject({}).meta({ description: 'Title and version of the contract.' }),
    paths: z.looseObject({}).meta({ description: 'Operations by path.' }),
  })
  .meta({ id: 'OpenApiDocument', examples: [{ openapi: '3.1.1', info: {}, paths: {} }] });
