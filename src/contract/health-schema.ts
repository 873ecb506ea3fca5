import { z } from 'zod';
import { timestampSchema } from './identifier.js';

/** "Fields `ok` (boolean), `version` (string), `commit` (string) and `deployedAt`"; `environment` and `contract` are additive. */
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
    examples: [{ ok: true, version: '1.0.0', commit: '3f1c0de', deployedAt: 1_767_225_600, environment: 'production', contract: '3.0.0' }],
  });

export const probeSchema = z.object({ ok: z.literal(true) }).meta({ id: 'Probe', examples: [{ ok: true }] });
