/** Derives a Postman collection (v2.1.0), `docs/takemark.postman_collection.json`, from the OpenAPI document. */

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** Steps that lead from a file to an answer, for each purpose of an upload. */
const FLOWS = [
  { name: 'Upload and verify', steps: ['createUpload', 'postUpload', 'verify'], purpose: 'verify' },
  { name: 'Upload and identify', steps: ['createUpload', 'postUpload', 'identify'], purpose: 'identify' },
];

/** Members of a response that later requests take, by operation. */
const KEPT = {
  // The key that was rotated expires, and may do less.
  rotateKey: ['apiKey'],
  createUpload: ['uploadId', 'url', 'fields.policy', 'fields.signature'],
  verify: ['proofId'],
  listProofs: ['proofs[0]?.proofId'],
  createReview: ['reviewId'],
  openEvidence: ['evidenceRequests.at(-1).requestId'],
};

/** Variables whose name is not the last word of where their value comes from. */
const VARIABLE_OF = { url: 'uploadUrl' };

const IDENTIFIERS = ['uploadId', 'proofId', 'reviewId', 'requestId', 'keyId'];
const VARIABLES = ['apiKey', 'uploadUrl', 'policy', 'signature', ...IDENTIFIERS];

/** Values that are the same for everybody. */
const GIVEN = { baseUrl: 'http://127.0.0.1:8080', name: 'valid', part: 'audio' };

/** Operations that only the page at `/docs` calls. */
const OMITTED = ['readDocsFile'];

/**
 * @param {object} document the OpenAPI document
 * @returns {object} a folder for each tag, with the flows; no secret: every value that is a caller's own is a variable
 */
export function postmanCollection(document) {
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        path,
        method: method.toUpperCase(),
      })),
    )
    .filter(({ operationId }) => !OMITTED.includes(operationId));
  const named = new Map(operations.map((operation) => [operation.operationId, operation]));
  const inFlow = new Set(FLOWS.flatMap(({ steps }) => steps));
  const folders = document.tags.map(({ name, description }) => ({
    name,
    ...(description === undefined ? {} : { description }),
    item: [
      ...FLOWS.filter(({ steps }) => named.get(steps[0]).tags.includes(name)).map((flow) => ({
        name: flow.name,
        item: flow.steps.map((step) =>
          item(named.get(step), { purpose: flow.purpose, url: step === 'postUpload' }),
        ),
      })),
      ...operations
        .filter(({ tags, operationId }) => tags.includes(name) && !inFlow.has(operationId))
        .map((operation) => item(operation, {})),
    ],
  }));
  return {
    info: { name: document.info.title, description: document.info.summary ?? '', schema: SCHEMA },
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: document.components.securitySchemes.apiKey.name, type: 'string' },
        { key: 'value', value: '{{apiKey}}', type: 'string' },
        { key: 'in', value: 'header', type: 'string' },
      ],
    },
    variable: [
      ...Object.entries(GIVEN).map(([key, value]) => ({ key, value, type: 'string' })),
      ...VARIABLES.map((key) => ({ key, value: '', type: 'string' })),
    ],
    item: folders,
  };
}

/** A request of an operation, with the test that keeps what later ones need. */
function item(operation, { purpose, url }) {
  const { parameters = [], requestBody, path, method, operationId, security } = operation;
  const [success] = Object.keys(operation.responses).filter((status) => /^[23]/.test(status));
  const body = requestBody && bodyOf(requestBody.content, purpose);
  return {
    name: operation.summary,
    request: {
      method,
      ...(security?.length === 0 ? { auth: { type: 'noauth' } } : {}),
      header: [
        ...(body?.mode === 'raw' ? [{ key: 'Content-Type', value: 'application/json' }] : []),
        ...parameters.filter((parameter) => parameter.in === 'header').map(setting),
      ],
      url: url
        ? { raw: '{{uploadUrl}}', host: ['{{uploadUrl}}'] }
        : address(
            path,
            parameters.filter((parameter) => parameter.in === 'query'),
          ),
      ...(body === undefined ? {} : { body }),
      ...(operation.description === undefined ? {} : { description: operation.description }),
    },
    event: [
      {
        listen: 'test',
        script: {
          type: 'text/javascript',
          exec: [
            `pm.test('it is ${success}', () => pm.response.to.have.status(${success}));`,
            ...(KEPT[operationId] ?? []).map((member) => {
              const name = member.split('.').at(-1);
              return `pm.collectionVariables.set('${VARIABLE_OF[name] ?? name}', pm.response.json().${member});`;
            }),
          ],
        },
      },
    ],
    response: [],
  };
}

/** A query parameter or header; what is optional is there to be switched on. */
function setting({ name, required, description, example, schema }) {
  const value = name === 'Idempotency-Key' ? '{{$guid}}' : String(example ?? schema.default ?? '');
  return { key: name, value, description, ...(required ? {} : { disabled: true }) };
}

function address(path, query) {
  const segments = path
    .slice(1)
    .replaceAll(/\{(\w+)\}/g, '{{$1}}')
    .split('/');
  const enabled = query.filter(({ required }) => required).map(setting);
  const shown = enabled.map(({ key, value }) => `${key}=${value}`).join('&');
  return {
    raw: `{{baseUrl}}/${segments.join('/')}${shown === '' ? '' : `?${shown}`}`,
    host: ['{{baseUrl}}'],
    path: segments,
    ...(query.length === 0 ? {} : { query: query.map(setting) }),
  };
}

function bodyOf(content, purpose) {
  const form = content['multipart/form-data'];
  if (form !== undefined)
    return {
      mode: 'formdata',
      // The file comes last.
      formdata: Object.entries(form.schema.properties).map(([key, { description, contentMediaType }]) =>
        contentMediaType === undefined
          ? { key, value: `{{${key}}}`, type: 'text', description }
          : {
              key,
              type: 'file',
              src: [],
              description,
              ...(form.schema.required.includes(key) ? {} : { disabled: true }),
            },
      ),
    };
  const { examples, example } = content['application/json'];
  const given = example ?? Object.values(examples)[0].value;
  const own = Object.fromEntries(
    IDENTIFIERS.filter((name) => name in given).map((name) => [name, `{{${name}}}`]),
  );
  const value = { ...given, ...own, ...(purpose !== undefined && 'purpose' in given ? { purpose } : {}) };
  return { mode: 'raw', raw: JSON.stringify(value, null, 2), options: { raw: { language: 'json' } } };
}
