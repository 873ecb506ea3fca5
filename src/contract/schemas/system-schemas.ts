import { z } from 'zod';
import { PRODUCT_EVENTS } from '../../domain/product-event.js';
import { timestampSchema } from '../primitives.js';

/** State and build of the service (rule 13.3). */
export const healthSchema = z
  .object({
    ok: z.boolean(),
    version: z.string(),
    commit: z.string(),
    deployedAt: timestampSchema,
    environment: z.string(),
    contract: z.string(),
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

export const probeSchema = z.object({ ok: z.literal(true) }).meta({ id: 'Probe', examples: [{ ok: true }] });

/** A name in a path of the download table. */
const slugSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'must be 1 to 64 letters, digits, dots, underscores and hyphens, the first a letter or digit',
  );

export const downloadQuerySchema = z
  .strictObject({ product: slugSchema, platform: slugSchema })
  .meta({ id: 'DownloadQuery', examples: [{ product: 'companion', platform: 'macos' }] });

/** A report of counts (rule 13.5). */
export const telemetrySchema = z
  .strictObject({
    events: z
      .array(
        z.strictObject({
          name: z.enum(PRODUCT_EVENTS),
          count: z.int().min(1).max(1_000_000),
          at: timestampSchema,
        }),
      )
      .min(1)
      .max(100),
  })
  .meta({
    id: 'Telemetry',
    examples: [{ events: [{ name: PRODUCT_EVENTS[0], count: 1, at: 1_767_225_600 }] }],
  });

export const telemetryAcceptedSchema = z
  .object({ accepted: z.int().min(0) })
  .meta({ id: 'TelemetryAccepted', examples: [{ accepted: 1 }] });

/** The contract's own document, without OpenAPI's schema. */
export const documentSchema = z
  .looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) })
  .meta({ id: 'OpenApiDocument', examples: [{ openapi: '3.1.1', info: {}, paths: {} }] });
