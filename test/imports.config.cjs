/**
 * The import rule of the house, one direction: each folder may import what stands here and nothing else of
 * `src/`.
 * @type {Record<string, string[]>}
 */
const MAY_IMPORT = {
  domain: [],
  ports: ['domain'],
  codec: ['domain'],
  // Rooms of no subject: time limits and pauses, and files that survive a kill.
  async: [],
  files: [],
  credential: ['domain', 'codec', 'ports'],
  // Traces: read, replayed and reported; pure, and run in a thread of their own.
  evidence: ['domain', 'codec'],
  // The library of session agents ships alone: it knows the vocabulary and the encoding.
  capture: ['domain', 'codec'],
  // Session agents of DAWs, beside no service.
  agents: ['capture', 'domain', 'async', 'files'],
  // Of the contract, the types of results alone.
  operations: ['domain', 'ports', 'contract', 'credential', 'codec', 'evidence'],
  contract: ['domain'],
  http: ['operations', 'ports', 'contract', 'domain', 'async'],
  engine: ['ports', 'domain', 'codec'],
  adapters: ['ports', 'domain', 'codec', 'async', 'files'],
  // Two that stand on the formats: who is trusted, and the process in which strangers' credentials are read.
  'adapters/signing': ['ports', 'domain', 'codec', 'credential', 'async', 'files'],
  'adapters/reading': ['ports', 'domain', 'codec', 'credential', 'async', 'files'],
  consumers: ['operations', 'ports', 'domain', 'codec', 'async'],
  background: ['operations', 'consumers', 'ports', 'domain', 'codec', 'async'],
  telemetry: ['ports', 'domain', 'async'],
  // The client ships alone: its types are generated from the OpenAPI document.
  client: [],
  'adapters/composing': ['ports', 'domain', 'codec', 'evidence', 'async'],
  'adapters/replaying': ['ports', 'domain', 'codec', 'evidence', 'async'],
  // `takemark seal`, `inspect` and `strip` work without a service: they load the engine, the key and the reader
  // through compose, when they run.
  cli: [
    'client',
    'contract',
    'domain',
    'async',
    'files',
    'config',
    'compose',
    'evidence',
    'capture',
    'agents',
  ],
  config: ['domain'],
  compose: [
    ...[
      'domain',
      'ports',
      'codec',
      'credential',
      'evidence',
      'capture',
      'agents',
      'operations',
      'contract',
      'http',
      'engine',
      'adapters',
      'background',
      'consumers',
      'telemetry',
      'client',
      'async',
      'files',
    ],
    'config',
  ],
  'main.ts': ['compose', 'config'],
};

/** Folder of each third-party library: rule 18.1. */
const LIBRARIES = {
  commander: ['cli'],
  express: ['http'],
  busboy: ['http'],
  piscina: ['engine'],
  'classic-level': ['adapters/embedded'],
  'cassandra-driver': ['adapters/cassandra'],
  'node-rdkafka': ['adapters/kafka'],
  '@aws-sdk/client-s3': ['adapters/assets'],
  zod: ['contract', 'config'],
  cborg: ['codec'],
  '@msgpack/msgpack': ['codec'],
  'prom-client': ['telemetry'],
  pino: ['telemetry'],
  'node-sqlite3-wasm': ['agents'],
};

/** Rooms of the Cassandra adapter, each with those that it may import; `store.ts` joins them. */
const CASSANDRA_ROOMS = {
  driver: [],
  commit: ['driver'],
  accounts: ['driver', 'commit'],
  proofs: ['driver', 'commit'],
  reviews: ['driver', 'commit', 'proofs'],
  usage: ['driver', 'commit'],
};

/** Layers of http, from the top. */
const HTTP_LAYERS = [
  '^src/service/http/[^/]+-listener\\.ts$',
  '^src/service/http/server/',
  '^src/service/http/body/',
  '^src/service/http/response/',
  '^src/service/http/(exchange|byte-budget)\\.ts$',
];

const escaped = (text) => text.replace(/[.\\/@-]/g, '\\$&');
const place = (name) => `^src/${escaped(name)}${name.endsWith('.ts') ? '$' : '/'}`;
/** Folders with a rule of their own inside one that has another. */
const within = (name) => Object.keys(MAY_IMPORT).filter((inner) => inner.startsWith(`${name}/`));
/** A package, wherever it is installed, and its types. */
const library = (name) => `(^|/)node_modules/(@types/)?${escaped(name)}/`;

module.exports = {
  forbidden: [
    ...Object.entries(MAY_IMPORT).map(([name, allowed]) => ({
      name,
      severity: 'error',
      from: { path: place(name), pathNot: within(name).map(place) },
      to: { path: '^(src|test|bench)/', pathNot: [name, ...allowed].map(place) },
    })),
    ...Object.entries(LIBRARIES).map(([name, homes]) => ({
      name: `library-${name.replace(/^@/, '').replace('/', '-')}`,
      severity: 'error',
      from: { path: '^src/', pathNot: homes.map(place) },
      to: { path: library(name) },
    })),
    {
      name: 'library-unlisted',
      comment: 'a library that has no home yet: give it one above',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        path: '(^|/)node_modules/',
        pathNot: [...Object.keys(LIBRARIES).map(library), '(^|/)node_modules/@types/node/'],
      },
    },
    {
      name: 'folders',
      comment: 'the folders are fixed',
      severity: 'error',
      from: { path: '^src/', pathNot: Object.keys(MAY_IMPORT).map(place) },
      to: {},
    },
    {
      name: 'domain-without-io',
      comment: 'hashing is a pure function; everything else of the platform is the world',
      severity: 'error',
      from: { path: '^src/(domain|contract)/' },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    },
    {
      name: 'operations-results',
      comment: 'the schemas define the results of operations, and operations load none of them',
      severity: 'error',
      from: { path: '^src/service/operations/' },
      to: { path: '^src/service/contract/', pathNot: '^src/contract/results\\.ts$' },
    },
    {
      name: 'operations-types',
      severity: 'error',
      from: { path: '^src/service/operations/' },
      to: { path: '^src/service/contract/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'adapters-apart',
      severity: 'error',
      from: { path: '^src/service/adapters/([^/]+)/' },
      to: { path: '^src/service/adapters/', pathNot: '^src/service/adapters/$1/' },
    },
    ...Object.entries(CASSANDRA_ROOMS).map(([room, allowed]) => ({
      name: `cassandra-${room}`,
      severity: 'error',
      from: { path: `^src/service/adapters/cassandra/${room}/` },
      to: {
        path: '^src/service/adapters/cassandra/',
        pathNot: [room, ...allowed].map((name) => place(`adapters/cassandra/${name}`)),
      },
    })),
    {
      name: 'cli-compose-when-needed',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/service/compose/', dependencyTypesNot: ['dynamic-import'] },
    },
    {
      name: 'client-alone',
      comment: 'the client ships without dependencies',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { path: '(^|/)node_modules/', pathNot: '@types/node/' },
    },
    {
      name: 'resolved',
      comment: 'the Kafka client is optional',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^node-rdkafka$' },
    },
    {
      name: 'no-circles',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
    ...HTTP_LAYERS.slice(1).map((layer, above) => ({
      name: `http-layers-${above + 1}`,
      comment: 'listeners, server, body, response, exchange: no layer knows one above it',
      severity: 'error',
      from: { path: layer },
      to: { path: HTTP_LAYERS.slice(0, above + 1) },
    })),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // `import type` counts too: the rule is about what knows what.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.d.ts'],
    },
  },
};
