/**
 * Writes takemark.json beside this file from the path table, and from takemark.json the client's types and the
 * Postman collection. Run by `npm run build:openapi` after a change of the contract.
 */
import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../../dist/src/contract/openapi.js';
import { clientTypes } from './client-types.mjs';
import { postmanCollection } from './postman-collection.mjs';

const document = openApiDocument();
writeFileSync(new URL('takemark.json', import.meta.url), `${JSON.stringify(document, null, 2)}\n`);
writeFileSync(new URL('../../src/client/api-types.ts', import.meta.url), clientTypes(document));
const collection = new URL('../../docs/takemark.postman_collection.json', import.meta.url);
writeFileSync(collection, `${JSON.stringify(postmanCollection(document), null, 2)}\n`);
