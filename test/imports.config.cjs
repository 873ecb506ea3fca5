/**
 * The buildings of `src/`, each with those that it may import. The command line starts every other program, so it
 * may import each of them.
 * @type {Record<string, string[]>}
 */
const BUILDINGS = {
  core: [],
  witness: ['core'],
  service: ['core', 'witness'],
  // The client ships alone: its types are generated from the OpenAPI document.
  client: [],
  agents: ['core', 'witness'],
  cli: ['core', 'witness', 'service', 'client', 'agents'],
};

/** The rooms of core that other buildings may use. The engine and the formats of credentials have fewer users. */
const CORE = ['core/domain', 'core/ports', 'core/codec', 'core/async', 'core/files'];
const WITNESS = ['witness/domain', 'witness/trace', 'witness/replay', 'witness/report'];

/**
 * The rooms, each with those that it may import and nothing else of `src/`. A name without a room is the whole
 * building.
 * @type {Record<string, string[]>}
 */
const MAY_IMPORT = {
  'core/domain': [],
  'core/ports': ['core/domain'],
  'core/codec': ['core/domain'],
  // Rooms without a subject: time limits and pauses, and files that survive a kill.
  'core/async': [],
  'core/files': [],
  'core/credential': ['core/domain', 'core/codec', 'core/ports'],
  'core/engine': ['core/ports', 'core/domain', 'core/codec'],

  'witness/domain': ['core/domain'],
  'witness/trace': ['core/domain', 'core/codec', 'witness/domain'],
  'witness/replay': ['core/domain', 'witness/domain', 'witness/trace'],
  'witness/report': [
    'core/domain',
    'core/codec',
    'witness/domain',
    'witness/trace',
    'witness/replay',
    'witness/projections',
  ],
  'witness/page': ['core/domain', 'witness/domain', 'witness/report', 'witness/projections'],
  'witness/projections': ['core/domain', 'witness/domain', 'witness/report'],
  // The library of session agents ships alone: it knows the vocabulary and the encoding.
  'witness/capture': ['core/domain', 'core/codec', 'witness/domain', 'witness/trace'],

  'service/domain': ['core/domain', 'witness/domain'],
  'service/ports': ['core/domain', 'core/ports', 'witness/domain', 'service/domain'],
  // Of the contract, only the types of results.
  'service/operations': [
    ...[...CORE, 'core/credential', ...WITNESS],
    ...['service/domain', 'service/ports', 'service/contract'],
  ],
  'service/contract': ['core/domain', 'witness/domain', 'service/domain'],
  'service/http': [
    ...['core/domain', 'core/ports', 'core/async', 'witness/domain'],
    ...['service/operations', 'service/ports', 'service/contract', 'service/domain'],
  ],
  'service/adapters': [...CORE, 'witness/domain', 'service/ports', 'service/domain'],
  // Two that know the formats: who is trusted, and the process that reads the credentials of strangers.
  'service/adapters/signing': [...CORE, 'core/credential', 'service/ports', 'service/domain'],
  'service/adapters/reading': [...CORE, 'core/credential', 'service/ports', 'service/domain'],
  'service/adapters/composing': [...CORE, ...WITNESS, 'service/ports', 'service/domain'],
  'service/adapters/replaying': [...CORE, ...WITNESS, 'service/ports', 'service/domain'],
  'service/consumers': [...CORE, 'witness/domain', 'service/operations', 'service/ports', 'service/domain'],
  'service/background': [
    ...[...CORE, 'witness/domain'],
    ...['service/operations', 'service/consumers', 'service/ports', 'service/domain'],
  ],
  'service/telemetry': ['core/domain', 'core/ports', 'core/async', 'service/ports', 'service/domain'],
  'service/config': ['core/domain', 'service/domain'],
  'service/compose': ['core', 'witness', 'service'],
  'service/main.ts': ['service/compose', 'service/config'],

  client: [],
  agents: [
    'core/domain',
    'core/async',
    'core/files',
    'core/codec',
    'witness/domain',
    'witness/trace',
    'witness/capture',
  ],
  // `takemark seal`, `inspect` and `strip` work without a service: they load the engine, the key and the reader
  // through compose, when they run.
  cli: [
    ...['core/domain', 'core/async', 'core/files', 'client', 'agents'],
    ...['witness', 'service/contract', 'service/domain', 'service/config', 'service/compose'],
  ],
  // Of the service, only the maker of RIFF chunks: the sandbox makes its fixtures with it while it runs.
  'cli/specimens': [
    ...['witness/domain', 'witness/capture', 'client', 'cli/command.ts', 'cli/sealer.ts'],
    'service/operations/sandbox/wave-file.ts',
  ],
};

/** Folder of each third-party library: rule 18.1. */
const LIBRARIES = {
  commander: ['cli'],
  express: ['service/http'],
  busboy: ['service/http'],
  piscina: ['core/engine'],
  'classic-level': ['service/adapters/embedded'],
  'cassandra-driver': ['service/adapters/cassandra'],
  'node-rdkafka': ['service/adapters/kafka'],
  '@aws-sdk/client-s3': ['service/adapters/assets'],
  zod: ['service/contract', 'service/config'],
  cborg: ['core/codec'],
  '@msgpack/msgpack': ['core/codec'],
  'prom-client': ['service/telemetry'],
  pino: ['service/telemetry'],
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

/** The most lines of each building. Generated files count. */
const LINES = { core: 12_000, witness: 9600, service: 52_000, client: 4200, cli: 10_100, agents: 5000 };

module.exports = {
  lines: LINES,
  buildings: BUILDINGS,
  libraries: LIBRARIES,
  forbidden: [
    ...Object.entries(MAY_IMPORT).map(([name, allowed]) => ({
      name,
      severity: 'error',
      from: { path: place(name), pathNot: within(name).map(place) },
      to: { path: '^(src|test|bench)/', pathNot: [name, ...allowed].map(place) },
    })),
    ...Object.entries(BUILDINGS).map(([name, allowed]) => ({
      name: `building-${name}`,
      comment: 'a building is built of what it states here',
      severity: 'error',
      from: { path: place(name) },
      to: { path: '^src/', pathNot: [name, ...allowed].map(place) },
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
      from: { path: '^src/(core/domain|witness/domain|service/domain|service/contract)/' },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    },
    {
      name: 'operations-results',
      comment: 'the schemas define the results of operations, and operations load none of them',
      severity: 'error',
      from: { path: '^src/service/operations/' },
      to: { path: '^src/service/contract/', pathNot: '^src/service/contract/results\\.ts$' },
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
        pathNot: [room, ...allowed].map((name) => place(`service/adapters/cassandra/${name}`)),
      },
    })),
    {
      name: 'cli-compose-when-needed',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/service/compose/', dependencyTypesNot: ['dynamic-import'] },
    },
    {
      name: 'specimens-where-asked-for',
      comment: 'a specimen is not genuine: only the demonstration and one command make them, and no service',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: ['cli/specimens', 'cli/demo', 'cli/commands/operator-trace.ts'].map(place),
      },
      to: { path: place('cli/specimens') },
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
