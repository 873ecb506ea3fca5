import { readFileSync } from 'node:fs';
import t from 'tap';
import type { OpenApiDocument } from '../../src/service/contract/openapi.js';
import {
  breaks,
  DOCUMENTS,
  outlineOf,
  parseOutline,
  printOutline,
  readDocument,
  releasedFile,
} from './outline.js';

// biome-ignore lint/suspicious/noExplicitAny: a plant changes any part of a document.
type Plant = (document: any) => void;

for (const name of DOCUMENTS)
  t.test(`${name}.json keeps everything that its callers rely on since the last release`, async (t) => {
    const released = parseOutline(readFileSync(releasedFile(name), 'utf8'));
    t.ok(released.size > 500, `${released.size} subjects are released`);
    t.strictSame(
      breaks(released, outlineOf(readDocument(name))),
      [],
      'after a break on purpose: npm run build:released',
    );
  });

t.test('an outline is read as it was written', async (t) => {
  for (const name of DOCUMENTS) {
    const outline = outlineOf(readDocument(name));
    t.strictSame(parseOutline(printOutline(outline)), outline);
  }
});

/** Changes a copy of the partners' document. Returns the breaks that the change is taken for. */
function planted(plant: Plant): readonly string[] {
  const document = readDocument('takemark');
  const changed: OpenApiDocument = structuredClone(document);
  plant(changed);
  return breaks(outlineOf(document), outlineOf(changed));
}

t.test('a part that is removed or changed is a break', async (t) => {
  const plants: Readonly<Record<string, readonly [Plant, ...string[]]>> = {
    member: [
      ({ components }) => delete components.schemas.ProofRecord.properties.issuedAt,
      'ProofRecord.issuedAt was removed',
    ],
    'member of an inline object': [
      ({ components }) => delete components.schemas.ProofRecord.properties.song.properties.title,
      'ProofRecord.song.title was removed',
    ],
    status: [
      ({ paths }) => delete paths['/v1/records/{proofId}'].get.responses['404'],
      'GET /v1/records/{proofId} 404 was removed',
      'GET /v1/records/{proofId} 404 application/json was removed',
    ],
    'value of an open list': [
      ({ components }) => components.schemas.Decision.properties.status['x-extensible-enum'].shift(),
      'Decision.status values: verified_binding was removed',
    ],
    'value of a closed list': [
      ({ components }) => components.schemas.UploadPurpose.enum.shift(),
      'UploadPurpose values: verify was removed',
    ],
    reason: [
      ({ paths }) => paths['/v1/records/{proofId}'].get.responses['403']['x-reasons'].shift(),
      'GET /v1/records/{proofId} 403: scope_missing was removed',
    ],
    type: [
      ({ components }) => (components.schemas.Timestamp.type = 'string'),
      'Timestamp: integer int64 was removed',
    ],
    format: [
      ({ components }) => delete components.schemas.Timestamp.format,
      'Timestamp: integer int64 was removed',
    ],
    'certainty of a member': [
      ({ components }) => components.schemas.ProofRecord.required.shift(),
      'ProofRecord.proofId: required was removed',
    ],
    'new required input': [
      ({ components }) => components.schemas.Verify.required.push('sidecar'),
      'Verify.sidecar: optional was removed',
      'POST /v1/verify requires body application/json.sidecar, which is new',
    ],
  };
  for (const [name, [plant, ...expected]] of Object.entries(plants))
    t.strictSame([...planted(plant)].sort(), expected.sort(), name);

  const gone = planted(({ paths }) => delete paths['/v1/records/{proofId}']);
  t.ok(gone.includes('GET /v1/records/{proofId} was removed'), 'path');
  t.ok(gone.every((one) => one.startsWith('GET /v1/records/{proofId}')));
  const method = planted(({ paths }) => delete paths['/v1/proofs/{proofId}'].delete);
  t.ok(method.includes('DELETE /v1/proofs/{proofId} was removed'), 'method');
  t.ok(method.every((one) => one.startsWith('DELETE /v1/proofs/{proofId}')));
});

t.test('an addition breaks nothing, and words do not count', async (t) => {
  const plants: Readonly<Record<string, Plant>> = {
    member: ({ components }) => (components.schemas.ProofRecord.properties.added = { type: 'string' }),
    'required member of a response': ({ components: { schemas } }) => {
      schemas.ProofRecord.properties.added = { type: 'string' };
      schemas.ProofRecord.required.push('added');
    },
    value: ({ components }) =>
      components.schemas.Decision.properties.status['x-extensible-enum'].push('added'),
    status: ({ paths }) => (paths['/docs'].get.responses['418'] = { description: 'A teapot.', headers: {} }),
    path: ({ paths }) => (paths['/v1/added'] = { get: paths['/docs'].get }),
    'optional parameter': ({ paths }) =>
      paths['/v1/verify'].post.parameters?.push({ name: 'a', in: 'query', required: false, schema: {} }),
    words: ({ info, paths, components }) => {
      info.description = paths['/docs'].get.summary = components.schemas.Timestamp.description = 'Words.';
    },
  };
  for (const [name, plant] of Object.entries(plants)) t.strictSame(planted(plant), [], name);
});
