/**
 * Replaces the outlines of the last release by the outlines of the checked-in OpenAPI documents. Run by
 * `npm run build:released` for a release or an announced break. `npm run build:openapi` does not write them, so that
 * no break is accepted in passing.
 */
import { writeFileSync } from 'node:fs';
import { DOCUMENTS, outlineOf, printOutline, readDocument, releasedFile } from './outline.js';

for (const name of DOCUMENTS) writeFileSync(releasedFile(name), printOutline(outlineOf(readDocument(name))));
