import { readFileSync } from 'node:fs';
import t from 'tap';
import { openApiDocument } from '../../src/service/contract/openapi.js';

const SCRIPT = new URL('../../../deploy/openapi/client-types.mjs', import.meta.url);

t.test("the client's types are those of the OpenAPI document", async (t) => {
  const { clientTypes } = (await import(SCRIPT.href)) as {
    clientTypes(document: ReturnType<typeof openApiDocument>): string;
  };
  t.ok(
    clientTypes(openApiDocument()) === readFileSync('src/client/api-types.ts', 'utf8'),
    'after a change of the contract: npm run build:openapi',
  );
});
