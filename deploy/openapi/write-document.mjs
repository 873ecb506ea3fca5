/**
 * Writes takemark.json beside this file from the path table, and the client's types from takemark.json. Run
 * by `npm run build:openapi` after a change of the contract.
 */
import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../../dist/src/contract/openapi.js';
import { clientTypes } from './client-types.mjs';

const document = openApiDocument();
writeFileSync(new URL('takemark.json', import.meta.url), `${JSON.stringify(document, null, 2)}\n`);
writeFileSync(new URL('../../src/client/api-types.ts', import.meta.url), clientTypes(document));
