/**
 * Writes takemark.json beside this file from the path table. Run by `npm run build:openapi` after a change of
 * the contract.
 */
import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../../dist/src/contract/openapi.js';

writeFileSync(new URL('takemark.json', import.meta.url), `${JSON.stringify(openApiDocument(), null, 2)}\n`);
