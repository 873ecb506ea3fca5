import { isIP } from 'node:net';
import { z } from 'zod';
import { defined } from '../domain/defined.js';
import { OPERATOR_TOKEN_PATTERN } from '../domain/operator-token.js';

const text = z.string().min(1);

const portSchema = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a port number')
  .transform(Number)
  .refine((port) => port <= 65_535, 'must be at most 65535');

function countSchema(max: number) {
  return z
    .string()
    .regex(/^\d{1,10}$/, 'must be a whole number')
    .transform(Number)
    .refine((count) => count >= 1 && count <= max, `must be from 1 to ${max}`);
}

const baseUrlSchema = z
  .url({ protocol: /^https?$/, error: 'must be an http or https address' })
  .refine((url) => !/[?#]/.test(url), 'must have no query or fragment')
  .transform((url) => url.replace(/\/+$/, ''));

const addressesSchema = z
  .string()
  .regex(/^[^\s,]+(?:,[^\s,]+)*$/, 'must be host:port, joined by commas')
  .transform((text) => text.split(','));

const proxiesSchema = z.string().transform((text, context) => {
  const proxies = text.split(',').map((proxy) => proxy.trim());
  for (const proxy of proxies) {
    const [, address = '', prefix = '0'] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(proxy) ?? [];
    if (isIP(address) === 0 || Number(prefix) > (isIP(address) === 4 ? 32 : 128)) {
      context.addIssue({
        code: 'custom',
        message: 'must be addresses or ranges such as 10.0.0.0/8, joined by commas',
      });
      return z.NEVER;
    }
  }
  return proxies;
});

/** Addresses by `product/platform`, as one JSON object; they go into a `Location` header. */
const downloadsSchema = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue({ code: 'custom', message: 'must be a JSON object' });
      return z.NEVER;
    }
  })
  .pipe(
    z.record(
      z
        .string()
        .regex(/^[a-z0-9][a-z0-9._-]{0,63}\/[a-z0-9][a-z0-9._-]{0,63}$/, 'must be named product/platform'),
      z
        .url({ protocol: /^https?$/, error: 'must be http or https addresses' })
        .transform((url) => new URL(url).href),
    ),
  );

/** Headers of responses that HTTP or the contract gives a meaning: a request id there makes them unreadable. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'accept-ranges',
  'age',
  'allow',
  'cache-control',
  'connection',
  'date',
  'deprecation',
  'etag',
  'expires',
  'idempotency-replayed',
  'keep-alive',
  'last-modified',
  'link',
  'location',
  'repr-digest',
  'retry-after',
  'set-cookie',
  'strict-transport-security',
  'sunset',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'vary',
  'www-authenticate',
  'x-content-type-options',
]);
const OWN_PREFIXES = /^(?:content|x-ratelimit)-/;

/** Tells whether a header of responses, by its name in lower case, is the service's own. */
function isOwnHeader(name: string): boolean {
  return OWN_HEADERS.has(name) || OWN_PREFIXES.test(name);
}

/** A setting: how its text is parsed, and what the page of settings says of it. */
interface Setting<Schema extends z.ZodType> {
  readonly schema: Schema;
  /** Meaning, in Markdown; a setting that needs no words has none. */
  readonly meaning: string;
  /** Words for what holds where it is not set and the schema has no default. */
  readonly otherwise?: string;
}

function setting<Schema extends z.ZodType>(
  schema: Schema,
  meaning: string,
  otherwise?: string,
): Setting<Schema> {
  return { schema, meaning, ...defined({ otherwise }) };
}

const PROCESS = {
  TAKEMARK_ENVIRONMENT: setting(
    z.enum(['production', 'beta']).default('production'),
    'or `beta`: keys, registry and signing identity of its own',
  ),
  TAKEMARK_DATA_DIR: setting(
    text.default('./takemark-data'),
    'store, assets, keys, journals; one process at a time',
  ),
  TAKEMARK_JOURNAL_DIR: setting(
    text.optional(),
    'journal of erasures and heads of the audit logs: put it on another volume than the store ([operating](operating.md))',
    '`journals` in the data directory',
  ),
  TAKEMARK_CONTENT_KEYS_DIR: setting(
    text.optional(),
    'keys with which the content of proofs is encrypted, where assets lie in a directory: mirrored, and in no backup ([operating](operating.md#content-keys))',
    '`content-keys` in the data directory',
  ),
  TAKEMARK_ACCEPT_PUT_BACK: setting(
    z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .optional(),
    'the code that a start names which found the store older than its audit heads; it holds for that state alone',
  ),
  TAKEMARK_ENGINE: setting(
    z.enum(['wasm', 'native']).default('wasm'),
    "`native` hashes with Node's own SHA-256: measured to pay on hosts with SHA instructions, see `npm run bench`",
  ),
  TAKEMARK_MAX_UPLOADS: setting(countSchema(1024).optional(), 'uploads measured at once', '512'),
  TAKEMARK_WORKERS: setting(countSchema(256).optional(), 'threads that measure them', 'cores less one'),
  TAKEMARK_PROCESSES: setting(
    countSchema(10_000).default(1),
    "service processes behind the balancer: each lets its share of a partner's rate, uploads and rotations pass; quotas are exact without it",
  ),
  TAKEMARK_LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace`, `silent`',
  ),
  TAKEMARK_COMMIT: setting(
    z
      .string()
      .regex(/^[0-9A-Za-z._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots or dashes')
      .default('unknown'),
    'what `GET /v1/health` reports',
  ),
  TAKEMARK_DEPLOYED_AT: setting(
    countSchema(9_999_999_999).optional(),
    'likewise, in unix seconds',
    'the start',
  ),
  TAKEMARK_STOP_GRACE_SECONDS: setting(
    countSchema(3600).default(30),
    'time for requests in flight when the service stops',
  ),
};

const LISTENERS = {
  TAKEMARK_HOST: setting(text.default('0.0.0.0'), 'address of the partner listener'),
  TAKEMARK_PORT: setting(portSchema.default(8080), 'its port'),
  TAKEMARK_PUBLIC_URL: setting(
    baseUrlSchema.optional(),
    'base of the upload addresses that partners are given: with TLS under a name of the certificate',
    '`http://127.0.0.1:8080`, with TLS `https://...`',
  ),
  TAKEMARK_TLS_CERT: setting(
    text.optional(),
    'PEM file: with it the partner listener speaks TLS 1.2 and 1.3, and nothing else. Read again when it changes (looked at every 10 s) or at SIGHUP; a pair that cannot be used is reported, and the former one stays',
  ),
  TAKEMARK_TLS_KEY: setting(text.optional(), 'its key; both or none'),
  /** Rule 3.3. */
  TAKEMARK_OPERATOR_HOST: setting(
    text.default('127.0.0.1'),
    'address of the operator listener. `/metrics`, `/livez` and `/readyz` answer under `localhost`, an address and the host given here, so that no web page reads them under a name of its own',
  ),
  TAKEMARK_OPERATOR_PORT: setting(portSchema.default(8081), 'its port'),
  TAKEMARK_OPERATOR_TOKEN: setting(
    z.string().regex(OPERATOR_TOKEN_PATTERN, 'must be 16 to 256 visible ASCII characters').optional(),
    'its bearer token; else kept in `operator-token` in the data directory, mode 0600',
    'made on first start',
  ),
  TAKEMARK_MAX_CONNECTIONS: setting(
    countSchema(1_000_000).default(4096),
    'open connections of a listener, a quarter of them for one address, so that a proxy in front belongs into `TAKEMARK_TRUSTED_PROXIES`',
  ),
  TAKEMARK_INGRESS_MIB: setting(
    countSchema(65_536).optional(),
    'held for callers before their worth is known (heads, forms up to the file, JSON bodies), and for responses that they do not read; beyond it they get 503, or their connection is cut',
    'an eighth of the memory, 32 to 512',
  ),
  TAKEMARK_TRUSTED_PROXIES: setting(
    proxiesSchema.default([]),
    'addresses and ranges (`10.0.0.0/8`) of the proxies in front, joined by commas: their `X-Forwarded-For` says who calls. Without it everybody behind a proxy shares the bounds of one address',
  ),
  TAKEMARK_REQUEST_ID_HEADER: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a header name')
      .refine(
        (name) => !isOwnHeader(name.toLowerCase()),
        'must be no header that means something else in a response',
      )
      .optional(),
    'a second header name for the request id',
  ),
  TAKEMARK_DOWNLOADS: setting(
    downloadsSchema.default({}),
    'JSON, `{"product/platform": "https://..."}`: where `GET /v1/download` redirects to',
  ),
};

const SIGNING = {
  TAKEMARK_SIGNING_ALGORITHM: setting(z.enum(['Ed25519', 'ES256']).default('Ed25519'), 'or `ES256`'),
  TAKEMARK_SIGNING_CERT: setting(
    text.optional(),
    'PEM file of the certificate that signs',
    'made on first start',
  ),
  TAKEMARK_SIGNING_KEY: setting(
    text.optional(),
    'PEM file of its key; not where a token has it',
    'made on first start',
  ),
  TAKEMARK_SIGNING_AUTHORITY: setting(
    text.optional(),
    'PEM file of the authority; all three or none',
    'made on first start',
  ),
  TAKEMARK_SIGNING_PKCS11: setting(
    text.optional(),
    "module of a PKCS#11 token that holds the key; needs OpenSC's `pkcs11-tool`",
  ),
  TAKEMARK_SIGNING_PKCS11_TOKEN: setting(z.string().min(1).max(32).optional(), 'label of the token'),
  TAKEMARK_SIGNING_PKCS11_KEY: setting(
    z.string().min(1).max(128).default('takemark'),
    'label of the key pair',
  ),
  TAKEMARK_SIGNING_PKCS11_PIN: setting(z.string().min(1).max(256).optional(), "the token's PIN"),
  TAKEMARK_SIGNING_PKCS11_PIN_FILE: setting(text.optional(), 'or a file whose first line it is'),
};

const CLUSTER = {
  TAKEMARK_STORE: setting(z.enum(['embedded', 'cassandra']).default('embedded'), 'or `cassandra`'),
  TAKEMARK_BUS: setting(z.enum(['embedded', 'kafka']).default('embedded'), 'or `kafka`'),
  TAKEMARK_SECRETS_FILE: setting(
    text.optional(),
    'the bundle that all processes of a cluster share; this or the next is needed with Cassandra',
  ),
  TAKEMARK_SECRETS: setting(text.optional(), "the bundle's text"),
  TAKEMARK_CONSUMERS: setting(
    z.enum(['on', 'off']).optional(),
    'whether the service runs the consumers too, or `takemark consumers` does',
    '`on`; with Cassandra and Kafka `off`',
  ),
  TAKEMARK_OUTBOX_LIMIT: setting(
    countSchema(100_000_000).default(100_000),
    'events of each topic that may wait for the bus in one process; then calls that would add one get 503, but with Cassandra no charge does',
  ),
  TAKEMARK_AUDIT_RATE: setting(
    z
      .string()
      .regex(/^\d{1,5}$/, 'must be a whole number')
      .transform(Number)
      .default(100),
    'records and files a second that the auditor looks at, in one process of all; `0`: none. Each is a read of the store and for most one of the bucket',
  ),
  TAKEMARK_UNAUTHENTICATED: setting(
    z.enum(['refuse', 'accept']).default('refuse'),
    "`accept` takes rows and events without a code of this installation's secrets: for the time in which a version that made none is replaced, see [deploy/cassandra](../deploy/cassandra/README.md)",
  ),
  TAKEMARK_CASSANDRA: setting(addressesSchema.optional(), '`host:port` of some nodes, joined by commas'),
  TAKEMARK_CASSANDRA_DC: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be the name of a data centre')
      .optional(),
    'the local data centre',
  ),
  TAKEMARK_CASSANDRA_KEYSPACE: setting(
    z
      .string()
      .regex(
        /^[a-z][a-z0-9_]{0,47}$/,
        'must be a letter and up to 47 letters, digits and underscores, in lower case',
      )
      .optional(),
    'the keyspace',
    '`takemark`, in `beta` `takemark_beta`',
  ),
  TAKEMARK_CASSANDRA_REPLICATION: setting(
    countSchema(16).default(3),
    'its replicas, where `migrate` makes it',
  ),
  TAKEMARK_CASSANDRA_USERNAME: setting(text.optional(), 'with `_PASSWORD`: both or none'),
  TAKEMARK_CASSANDRA_PASSWORD: setting(text.optional(), ''),
  TAKEMARK_CASSANDRA_TLS_CA: setting(text.optional(), "PEM file of the nodes' authority; turns TLS on"),
  TAKEMARK_CASSANDRA_TOPOLOGY: setting(
    z.enum(['one_data_centre', 'one_active', 'all_active']).default('one_data_centre'),
    'where the keyspace lies in several data centres: `one_active` (processes in one of them, the others get copies) or `all_active` (processes in each, every decision over all); see [operating](operating.md#two-data-centres)',
  ),
  TAKEMARK_ACCEPT_SERVERS: setting(
    z
      .string()
      .regex(
        /^[a-z]+\.[a-z_]+(?:,[a-z]+\.[a-z_]+)*$/,
        'must be names of checks such as kafka.replication, joined by commas',
      )
      .transform((text) => text.split(','))
      .default([]),
    'names of checks of `takemark operator doctor`, joined by commas, whose refusal in production becomes a warning',
  ),
  TAKEMARK_KAFKA: setting(addressesSchema.optional(), '`host:port` of some brokers, joined by commas'),
  TAKEMARK_KAFKA_PREFIX: setting(
    z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/,
        'must be up to 100 letters, digits, dots, underscores and dashes',
      )
      .optional(),
    'first part of the names of topics and groups',
    '`takemark`, in `beta` `takemark-beta`',
  ),
  TAKEMARK_KAFKA_PARTITIONS: setting(
    countSchema(1000).default(12),
    'of the topics that `migrate` makes; never changed later, because keys would move',
  ),
  TAKEMARK_KAFKA_REPLICATION: setting(countSchema(16).default(3), 'likewise'),
  TAKEMARK_KAFKA_USERNAME: setting(text.optional(), 'SASL with SCRAM-SHA-512: both or none'),
  TAKEMARK_KAFKA_PASSWORD: setting(text.optional(), ''),
  TAKEMARK_KAFKA_TLS_CA: setting(
    text.optional(),
    "PEM file of the brokers' authority; turns TLS on, host names are verified",
  ),
  TAKEMARK_ASSETS: setting(
    z.enum(['directory', 's3']).default('directory'),
    'or `s3`, which is needed with Cassandra and Kafka together',
  ),
  TAKEMARK_S3_BUCKET: setting(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket')
      .optional(),
    'it must keep no versions, because erased is erased',
  ),
  TAKEMARK_S3_ENDPOINT: setting(baseUrlSchema.optional(), '', "Amazon's"),
  TAKEMARK_S3_REGION: setting(
    z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/, 'must be the name of a region')
      .default('us-east-1'),
    '',
  ),
  TAKEMARK_S3_PREFIX: setting(
    z
      .string()
      .regex(
        /^(?:[A-Za-z0-9._-]{1,64}\/){1,8}$/,
        'must be letters, digits, dots, dashes and slashes, and end with a slash',
      )
      .optional(),
    'under it lies nothing of another registry: what no proof has is collected, unless that were more than kills leave',
    '`<environment>/assets/`',
  ),
  TAKEMARK_S3_ACCESS_KEY: setting(text.optional(), 'both or none', "the platform's identity"),
  TAKEMARK_S3_SECRET_KEY: setting(text.optional(), '', "the platform's identity"),
};

const COMMAND_LINE = {
  TAKEMARK_URL: setting(
    baseUrlSchema.optional(),
    'the service, as `--url` does',
    'that of the service whose `TAKEMARK_DATA_DIR` is named, if it runs on this machine, else `http://127.0.0.1:8080`',
  ),
  TAKEMARK_OPERATOR_URL: setting(
    baseUrlSchema.optional(),
    'its operator listener, as `--operator-url` does',
    'the same, else `http://127.0.0.1:8081`',
  ),
  TAKEMARK_PROFILE: setting(
    text.optional(),
    'name of a profile: its address and key take the place of the variables below and of `TAKEMARK_URL`',
  ),
  TAKEMARK_API_KEY: setting(text.optional(), "a partner's key"),
  TAKEMARK_API_SIGNING_KEY: setting(
    text.optional(),
    'PEM file of the private key that signs calls, where the API key was made with `--public-key`',
  ),
  TAKEMARK_CA: setting(
    text.optional(),
    'PEM file of the authorities that may vouch for the service',
    "Node's authorities",
  ),
  TAKEMARK_ALLOW_PLAIN_HTTP: setting(
    z.enum(['0', '1']).default('0'),
    '`1` lets keys, tokens and audio travel over plain HTTP to another machine, as `--allow-plain-http` does',
  ),
};

/** Every setting there is, by the parts of the page of settings. */
export const SETTINGS_BY_PART: Readonly<Record<string, Readonly<Record<string, Setting<z.ZodType>>>>> = {
  'The process': PROCESS,
  Listeners: LISTENERS,
  Signing: SIGNING,
  'A cluster': CLUSTER,
  'The command line': COMMAND_LINE,
};

const SETTINGS = { ...PROCESS, ...LISTENERS, ...SIGNING, ...CLUSTER, ...COMMAND_LINE };

type Schemas<Settings extends Record<string, Setting<z.ZodType>>> = {
  readonly [Name in keyof Settings]: Settings[Name]['schema'];
};

/** Schema of every variable, by its name. */
export const variables = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, { schema }]) => [name, schema]),
) as Schemas<typeof SETTINGS>;

/** The variables, parsed one by one, with their defaults. */
export type Values = z.output<z.ZodObject<typeof variables>>;
