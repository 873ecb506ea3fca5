/**
 * Writes takemark.json and operator.json beside this file from the path table, and from takemark.json the client's types,
 * the Postman collection and modules of the Python package. Run by `npm run build:openapi` after a change of the contract.
 */
import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../../dist/src/service/contract/openapi.js';
import { ROUTES } from '../../dist/src/service/contract/routes/routes.js';
import { clientTypes } from './client-types.mjs';
import { postmanCollection } from './postman-collection.mjs';
import { pythonModules } from './python-package.mjs';

const document = openApiDocument();
const write = (name, contents) =>
  writeFileSync(new URL(name, import.meta.url), `${JSON.stringify(contents, null, 2)}\n`);
write('takemark.json', document);
write('operator.json', openApiDocument(ROUTES, 'operator'));
writeFileSync(new URL('../../src/client/api-types.ts', import.meta.url), clientTypes(document));
write('../../docs/takemark.postman_collection.json', postmanCollection(document));
for (const [name, text] of Object.entries(pythonModules(document)))
  writeFileSync(new URL(`../python/takemark/${name}`, import.meta.url), text);
