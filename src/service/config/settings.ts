import { isIP } from 'node:net';
import { z } from 'zod';
import { defined } from '../../core/domain/defined.js';
import { type NamedToken, OPERATOR_TOKEN_PATTERN } from '../domain/operator-token.js';
import { DEFAULT_LARGE_BYTES, MAX_LARGE_BYTES } from '../domain/upload.js';

const text = z.string().min(1);

const portSchema = z
  .string()
  .refine((text) => !/^(?:tcp|udp|sctp):\/\//.test(text), {
    error: 'was set by Kubernetes for a Service of this name: set enableServiceLinks: false in the pod',
    abort: true,
  })
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
  // Messages and pages show the address.
  .refine((url) => !namesUser(url), 'must have no user name or password')
  .transform((url) => url.replace(/\/+$/, ''));

function namesUser(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { username, password } = new URL(address);
  return `${username}${password}` !== '';
}

const addressesSchema = z
  .string()
  .regex(/^[^\s,]+(?:,[^\s,]+)*$/, 'must be a comma-separated list of host:port')
  .transform((text) => text.split(','));

const namesSchema = z
  .string()
  .regex(
    /^\.?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?:,\.?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)*$/,
    'must be a comma-separated list of host names',
  )
  .transform((text) => text.toLowerCase().split(','));

/** The most operator tokens with names. Each of them makes the first challenge after a start slower. */
const MOST_NAMED_TOKENS = 16;

/** Lines of a name and a token. The message quotes nothing, because the text is secret. */
const namedTokensSchema = z.string().transform((text, context): readonly NamedToken[] => {
  const tokens: NamedToken[] = [];
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '') continue;
    const [, name, token] = /^([a-z0-9][a-z0-9._-]{0,31}) +(\S+)$/.exec(line.trim()) ?? [];
    const isNew = tokens.every((other) => other.name !== name && other.token !== token);
    if (name !== undefined && token !== undefined && OPERATOR_TOKEN_PATTERN.test(token) && isNew)
      tokens.push({ name, token });
    else {
      context.addIssue({
        code: 'custom',
        message:
          'must have on each line a new name of up to 32 lower-case letters, digits, dots and dashes, a space, and a new token of 16 to 256 visible ASCII characters',
      });
      return z.NEVER;
    }
  }
  if (tokens.length <= MOST_NAMED_TOKENS) return tokens;
  context.addIssue({ code: 'custom', message: `must have at most ${MOST_NAMED_TOKENS} tokens` });
  return z.NEVER;
});

const proxiesSchema = z.string().transform((text, context) => {
  const proxies = text.split(',').map((proxy) => proxy.trim());
  for (const proxy of proxies) {
    const [, address = '', prefix = '0'] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(proxy) ?? [];
    if (isIP(address) === 0 || Number(prefix) > (isIP(address) === 4 ? 32 : 128)) {
      context.addIssue({
        code: 'custom',
        message: 'must be a comma-separated list of addresses or ranges such as 10.0.0.0/8',
      });
      return z.NEVER;
    }
  }
  return proxies;
});

/** A JSON object from `product/platform` to the address that the `Location` header gets. */
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

/** The response headers with a meaning in HTTP or in the contract. A request id must not replace them. */
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
const OWN_PREFIXES = /^(?:content|x-ratelimit)-|^ratelimit/;

/** Returns whether a lower-case header name is one of the service's own response headers. */
function isOwnHeader(name: string): boolean {
  return OWN_HEADERS.has(name) || OWN_PREFIXES.test(name);
}

/** A setting: the parser of its text, and its description on the configuration page. */
interface Setting<Schema extends z.ZodType> {
  readonly schema: Schema;
  /** The description in Markdown. Empty if the name says enough. */
  readonly meaning: string;
  /** The description of the default, if the schema has none. */
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
    '`production` or `beta`. Each environment has its own keys, registry and signing identity',
  ),
  TAKEMARK_DATA_DIR: setting(
    text.default('./takemark-data'),
    'directory of the store, assets, keys and journals. Only one process at a time may use it',
  ),
  TAKEMARK_JOURNAL_DIR: setting(
    text.optional(),
    'directory of the erasure journal and the audit log heads. Put it on another volume than the store ([data](operating/data.md))',
    '`journals` in the data directory',
  ),
  TAKEMARK_CONTENT_KEYS_DIR: setting(
    text.optional(),
    'directory of the keys that encrypt the content of proofs, if assets are stored in a directory. Mirror it, but never back it up ([data](operating/data.md#content-keys))',
    '`content-keys` in the data directory',
  ),
  TAKEMARK_MIRROR_DIR: setting(
    text.optional(),
    'directory on another disk with a second copy of content keys and journals. Each key and each erasure is written to both before its answer, and an erasure destroys both keys ([operating](operating/data.md#a-second-disk))',
  ),
  TAKEMARK_ACCEPT_PUT_BACK: setting(
    z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .optional(),
    'code that a refused start prints if the store is older than its audit heads. The code accepts only this state of the store',
  ),
  TAKEMARK_ACCEPT_LOST_KEYS: setting(
    z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .optional(),
    'code that the log line `content_keys_lost` has. It makes the present content keys those of the store. Use it only if the former keys are lost for good',
  ),
  TAKEMARK_ENGINE: setting(
    z.enum(['wasm', 'native']).default('wasm'),
    "`wasm`, or `native` to hash with Node's own SHA-256, which is faster on hosts with SHA instructions (see `npm run bench`)",
  ),
  TAKEMARK_EIGHT_LANES: setting(
    z.enum(['on', 'off']).default('off'),
    '`on`: the engine `wasm` hashes eight uploads side by side where each worker finds at its start that they are right and faster. This sets an experimental flag of V8 for the whole process. It gains on processors with AVX2 and Node 24 or later ([decision](decisions/0069-eight-lanes.md))',
  ),
  TAKEMARK_MAX_UPLOADS: setting(
    countSchema(1024).optional(),
    'maximum number of uploads measured at the same time',
    '512',
  ),
  TAKEMARK_MAX_LARGE_MIB: setting(
    countSchema(MAX_LARGE_BYTES / 1_048_576).default(DEFAULT_LARGE_BYTES / 1_048_576),
    'largest file in MiB of the purposes `verify_large` and `identify_large`. A file of any other purpose has at most 65 MiB ([large files](operating/limits.md#large-files))',
  ),
  TAKEMARK_WORKERS: setting(
    countSchema(256).optional(),
    'worker threads that parse and hash uploads',
    'number of cores minus one',
  ),
  TAKEMARK_PROCESSES: setting(
    countSchema(10_000).optional(),
    "number of service processes behind the load balancer. Each process allows its share of a partner's rate, uploads and rotations. Quotas are exact without this setting",
    'counted in a cluster ([grow](operating/grow.md#how-processes-are-counted)), otherwise 1',
  ),
  TAKEMARK_UNKNOWN_SETTINGS: setting(
    z.enum(['refuse', 'warn']).default('refuse'),
    '`refuse`: the service does not start if a variable begins with `TAKEMARK_` and is not a setting. `warn`: the log names the variable',
  ),
  TAKEMARK_LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace`, `silent`. SIGUSR2 changes the level of a running process ([monitor](operating/monitor.md#the-log))',
  ),
  TAKEMARK_LOG_FORMAT: setting(
    z.enum(['numbers', 'words']).default('numbers'),
    '`numbers`: `level` is a number and `time` is in unix milliseconds. `words`: `level` is a word and `time` is a date of RFC 3339',
  ),
  TAKEMARK_LOG_ADDRESSES: setting(
    z.enum(['0', '1']).default('0'),
    '`1`: request lines have the address of the caller, of IPv6 the /64 ([monitor](operating/monitor.md#addresses-of-callers))',
  ),
  TAKEMARK_COMMIT: setting(
    z
      .string()
      .regex(/^[0-9A-Za-z._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots or dashes')
      .optional(),
    'commit that `GET /v1/health`, the metric `takemark_build_info` and the log report',
    'commit of the sources that `npm run build` recorded, else `unknown`',
  ),
  TAKEMARK_DEPLOYED_AT: setting(
    countSchema(9_999_999_999).optional(),
    'deployment time that `GET /v1/health` reports, in unix seconds',
    'start of the process',
  ),
  TAKEMARK_DRAIN_SECONDS: setting(
    z
      .string()
      .regex(/^\d{1,4}$/, 'must be a whole number')
      .transform(Number)
      .refine((seconds) => seconds <= 3600, 'must be at most 3600')
      .default(0),
    'seconds between SIGTERM and the end of the listeners. `/readyz` already answers 503, and calls are still served with `Connection: close`, so that a load balancer can take the process out first ([proxies](proxies.md#restart-without-failed-calls))',
  ),
  TAKEMARK_STOP_GRACE_SECONDS: setting(
    countSchema(3600).default(30),
    'seconds that requests in flight get when the service stops. Requests that take longer are cut off',
  ),
};

const LISTENERS = {
  TAKEMARK_HOST: setting(
    text.optional(),
    'address of the partner listener. `0.0.0.0` accepts connections from other machines',
    '`127.0.0.1`; with TLS `0.0.0.0`',
  ),
  TAKEMARK_PORT: setting(portSchema.default(8080), 'port of the partner listener'),
  TAKEMARK_PUBLIC_URL: setting(
    baseUrlSchema.optional(),
    'base URL of the upload addresses that partners receive. With TLS, use a host name of the certificate',
    '`http://127.0.0.1:<TAKEMARK_PORT>`; with TLS `https://`',
  ),
  TAKEMARK_TLS_CERT: setting(
    text.optional(),
    'PEM file of the certificate. If set, the partner listener accepts only TLS 1.2 and 1.3. The file is read again when it changes (checked every 10 s) or on SIGHUP. If the new pair is unusable, an error is reported and the old pair stays in use',
  ),
  TAKEMARK_TLS_KEY: setting(
    text.optional(),
    'PEM file of the key of `TAKEMARK_TLS_CERT`. Set both or neither',
  ),
  /** Rule 3.3. */
  TAKEMARK_OPERATOR_HOST: setting(
    text.default('127.0.0.1'),
    'address of the operator listener. `/metrics`, `/livez` and `/readyz` accept only requests whose `Host` is `localhost`, an IP address, this setting or one of `TAKEMARK_OPERATOR_NAMES`. `/operator/v1/challenge` accepts only the first three. So a web page cannot read them under its own host name',
  ),
  TAKEMARK_OPERATOR_NAMES: setting(
    namesSchema.default([]),
    'comma-separated host names under which `/metrics`, `/livez` and `/readyz` also answer, such as `takemark-0.takemark.svc`. A name that begins with a dot allows every name that ends with it',
  ),
  TAKEMARK_OPERATOR_PORT: setting(portSchema.default(8081), 'port of the operator listener'),
  TAKEMARK_OPERATOR_TOKEN: setting(
    z.string().regex(OPERATOR_TOKEN_PATTERN, 'must be 16 to 256 visible ASCII characters').optional(),
    'bearer token of the operator listener. If not set, it is stored in `operator-token` in the data directory, mode 0600',
    'created on first start',
  ),
  TAKEMARK_OPERATOR_TOKEN_FILE: setting(text.optional(), 'file with `TAKEMARK_OPERATOR_TOKEN`'),
  TAKEMARK_OPERATOR_TOKENS: setting(
    namedTokensSchema.default([]),
    'further operator tokens with names, at most 16: on each line a name and a token, with a space between. Audit entries and log lines have the name ([monitor](operating/monitor.md#who-made-a-change))',
  ),
  TAKEMARK_OPERATOR_TOKENS_FILE: setting(text.optional(), 'file with `TAKEMARK_OPERATOR_TOKENS`'),
  TAKEMARK_MAX_CONNECTIONS: setting(
    countSchema(1_000_000).default(4096),
    'maximum number of open connections per listener. One client address may open a quarter of them, so list a proxy in front in `TAKEMARK_TRUSTED_PROXIES`',
  ),
  TAKEMARK_INGRESS_MIB: setting(
    countSchema(65_536).optional(),
    'memory in MiB for request data of callers that are not checked yet (heads, forms up to the file, JSON bodies), for credentials of uploads that have not ended, and for responses that callers do not read. Beyond it, callers get 503 or their connection is closed',
    'an eighth of the memory, from 32 to 512',
  ),
  TAKEMARK_TRUSTED_PROXIES: setting(
    proxiesSchema.default([]),
    'comma-separated addresses and ranges (`10.0.0.0/8`) of the proxies in front. The client address is read from their `X-Forwarded-For`. Without this setting, all clients of a proxy share the limits of one address',
  ),
  TAKEMARK_REQUEST_ID_HEADER: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a header name')
      .refine(
        (name) => !isOwnHeader(name.toLowerCase()),
        'must not be a response header with another meaning',
      )
      .optional(),
    'second header name for the request id',
  ),
  TAKEMARK_DOWNLOADS: setting(
    downloadsSchema.default({}),
    'JSON object `{"product/platform": "https://..."}` with the redirect targets of `GET /v1/download`',
  ),
};

const SIGNING = {
  TAKEMARK_SIGNING_ALGORITHM: setting(
    z.enum(['Ed25519', 'ES256']).default('Ed25519'),
    'signature algorithm: `Ed25519` or `ES256`',
  ),
  TAKEMARK_SIGNING_CERT: setting(
    text.optional(),
    'PEM file of the signing certificate',
    'created on first start',
  ),
  TAKEMARK_SIGNING_KEY: setting(
    text.optional(),
    'PEM file of the signing key. Not set if a PKCS#11 token holds the key',
    'created on first start',
  ),
  TAKEMARK_SIGNING_AUTHORITY: setting(
    text.optional(),
    'PEM file of the certificate authority. Set certificate, key and authority together or none',
    'created on first start',
  ),
  TAKEMARK_SIGNING_PKCS11: setting(
    text.optional(),
    "module of the PKCS#11 token that holds the signing key. Needs OpenSC's `pkcs11-tool`",
  ),
  TAKEMARK_SIGNING_PKCS11_TOKEN: setting(z.string().min(1).max(32).optional(), 'label of the token'),
  TAKEMARK_SIGNING_PKCS11_KEY: setting(
    z.string().min(1).max(128).default('takemark'),
    'label of the key pair',
  ),
  TAKEMARK_SIGNING_PKCS11_PIN: setting(z.string().min(1).max(256).optional(), 'PIN of the token'),
  TAKEMARK_SIGNING_PKCS11_PIN_FILE: setting(
    text.optional(),
    'file with the PIN of the token in its first line, instead of `TAKEMARK_SIGNING_PKCS11_PIN`',
  ),
};

const CLUSTER = {
  TAKEMARK_STORE: setting(
    z.enum(['embedded', 'cassandra']).default('embedded'),
    'store of the service: `embedded` or `cassandra`',
  ),
  TAKEMARK_BUS: setting(
    z.enum(['embedded', 'kafka']).default('embedded'),
    'event bus: `embedded` or `kafka`',
  ),
  TAKEMARK_SECRETS_FILE: setting(
    text.optional(),
    'file of the secrets bundle that all processes of a cluster share. Cassandra needs this or `TAKEMARK_SECRETS`',
  ),
  TAKEMARK_SECRETS: setting(text.optional(), 'text of the secrets bundle'),
  TAKEMARK_CONSUMERS: setting(
    z.enum(['on', 'off']).optional(),
    '`on` runs the consumers inside the service process. `off` leaves them to `takemark consumers`',
    '`on`; with Cassandra and Kafka `off`',
  ),
  TAKEMARK_OUTBOX_LIMIT: setting(
    countSchema(100_000_000).default(100_000),
    'maximum number of events per topic that may wait for the bus in one process. Beyond it, calls that would add an event get 503. With Cassandra, charges are never refused',
  ),
  TAKEMARK_AUDIT_RATE: setting(
    z
      .string()
      .regex(/^\d{1,5}$/, 'must be a whole number')
      .transform(Number)
      .default(100),
    'records and files that the auditor checks per second, in a single process of the cluster. `0` turns the auditor off. Each check is one read of the store, and in most cases one of the bucket',
  ),
  TAKEMARK_SAMPLES_FILL_MIB: setting(
    countSchema(10_000).default(32),
    'MiB of delivered files that `takemark operator samples fill` reads per second',
  ),
  TAKEMARK_UNAUTHENTICATED: setting(
    z.enum(['refuse', 'accept']).default('refuse'),
    "`refuse`, or `accept` to read rows and events without a valid MAC of this installation's secrets. Use `accept` only while you replace a version that wrote no MACs, see [deploy/cassandra](../deploy/cassandra/README.md)",
  ),
  TAKEMARK_CASSANDRA: setting(addressesSchema.optional(), 'comma-separated `host:port` of some nodes'),
  TAKEMARK_CASSANDRA_DC: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be the name of a data centre')
      .optional(),
    'name of the local data centre',
  ),
  TAKEMARK_CASSANDRA_KEYSPACE: setting(
    z
      .string()
      .regex(
        /^[a-z][a-z0-9_]{0,47}$/,
        'must be a letter and up to 47 letters, digits and underscores, in lower case',
      )
      .optional(),
    'name of the keyspace',
    '`takemark`, in `beta` `takemark_beta`',
  ),
  TAKEMARK_CASSANDRA_REPLICATION: setting(
    countSchema(16).default(3),
    'number of replicas of a keyspace that `migrate` creates',
  ),
  TAKEMARK_CASSANDRA_USERNAME: setting(
    text.optional(),
    'user name. Set it together with `TAKEMARK_CASSANDRA_PASSWORD` or not at all',
  ),
  TAKEMARK_CASSANDRA_PASSWORD: setting(text.optional(), ''),
  TAKEMARK_CASSANDRA_PASSWORD_FILE: setting(text.optional(), 'file with `TAKEMARK_CASSANDRA_PASSWORD`'),
  TAKEMARK_CASSANDRA_TLS_CA: setting(
    text.optional(),
    "PEM file of the nodes' certificate authority. Setting it turns TLS on",
  ),
  TAKEMARK_CASSANDRA_TOPOLOGY: setting(
    z.enum(['one_data_centre', 'one_active', 'all_active']).default('one_data_centre'),
    'data centres of the keyspace: `one_data_centre`, `one_active` (processes run in one data centre, the others hold copies) or `all_active` (processes run in each, and every decision spans all of them). See [data centres](operating/data-centres.md)',
  ),
  TAKEMARK_ACCEPT_SERVERS: setting(
    z
      .string()
      .regex(
        /^[a-z]+\.[a-z_]+(?:,[a-z]+\.[a-z_]+)*$/,
        'must be a comma-separated list of check names such as kafka.replication',
      )
      .transform((text) => text.split(','))
      .default([]),
    'comma-separated names of `takemark operator doctor` checks. Their refusals in production become warnings',
  ),
  TAKEMARK_KAFKA: setting(addressesSchema.optional(), 'comma-separated `host:port` of some brokers'),
  TAKEMARK_KAFKA_PREFIX: setting(
    z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/,
        'must be up to 100 letters, digits, dots, underscores and dashes',
      )
      .optional(),
    'prefix of the names of topics and consumer groups',
    '`takemark`, in `beta` `takemark-beta`',
  ),
  TAKEMARK_KAFKA_PARTITIONS: setting(
    countSchema(1000).default(12),
    'number of partitions of the topics that `migrate` creates. Never change it later, because keys would move to other partitions',
  ),
  TAKEMARK_KAFKA_REPLICATION: setting(
    countSchema(16).default(3),
    'replication factor of the topics that `migrate` creates',
  ),
  TAKEMARK_KAFKA_USERNAME: setting(
    text.optional(),
    'user name for SASL with SCRAM-SHA-512. Set it together with `TAKEMARK_KAFKA_PASSWORD` or not at all',
  ),
  TAKEMARK_KAFKA_PASSWORD: setting(text.optional(), ''),
  TAKEMARK_KAFKA_PASSWORD_FILE: setting(text.optional(), 'file with `TAKEMARK_KAFKA_PASSWORD`'),
  TAKEMARK_KAFKA_TLS_CA: setting(
    text.optional(),
    "PEM file of the brokers' certificate authority. Setting it turns TLS on; host names are verified",
  ),
  TAKEMARK_ASSETS: setting(
    z.enum(['directory', 's3']).default('directory'),
    'place of the assets: `directory` or `s3`. Cassandra together with Kafka needs `s3`',
  ),
  TAKEMARK_S3_BUCKET: setting(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket')
      .optional(),
    'name of the bucket. Versioning must be off, because erased assets must not survive as versions',
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
    'key prefix in the bucket. No other registry may use it, because objects without a proof are deleted. Nothing is deleted if the bucket has more objects without a proof than crashes can leave',
    '`<environment>/assets/`',
  ),
  TAKEMARK_S3_ACCESS_KEY: setting(
    text.optional(),
    'access key. Set it together with `TAKEMARK_S3_SECRET_KEY` or not at all',
    "the platform's identity",
  ),
  TAKEMARK_S3_ACCESS_KEY_FILE: setting(text.optional(), 'file with `TAKEMARK_S3_ACCESS_KEY`'),
  TAKEMARK_S3_SECRET_KEY: setting(text.optional(), '', "the platform's identity"),
  TAKEMARK_S3_SECRET_KEY_FILE: setting(text.optional(), 'file with `TAKEMARK_S3_SECRET_KEY`'),
};

const COMMAND_LINE = {
  TAKEMARK_URL: setting(
    baseUrlSchema.optional(),
    'address of the service, like `--url`',
    'address of the service on this machine that uses `TAKEMARK_DATA_DIR` (if set), else `http://127.0.0.1:8080`',
  ),
  TAKEMARK_OPERATOR_URL: setting(
    baseUrlSchema.optional(),
    'address of the operator listener, like `--operator-url`',
    'as for `TAKEMARK_URL`, also in `./takemark-data` if the token stored there is used; else `http://127.0.0.1:8081`',
  ),
  TAKEMARK_PROFILE: setting(
    text.optional(),
    'name of a profile. Its address and keys replace `TAKEMARK_URL`, `TAKEMARK_API_KEY`, `TAKEMARK_API_SIGNING_KEY` and `TAKEMARK_CA`',
  ),
  TAKEMARK_API_KEY: setting(text.optional(), 'API key of the partner'),
  TAKEMARK_API_KEY_FILE: setting(text.optional(), 'file with `TAKEMARK_API_KEY`'),
  TAKEMARK_API_SIGNING_KEY: setting(
    text.optional(),
    'PEM file of the private key that signs calls, if the API key was created with `--public-key`',
  ),
  TAKEMARK_CA: setting(
    text.optional(),
    'PEM file of the certificate authorities to trust for the service',
    "Node's certificate authorities",
  ),
  TAKEMARK_ALLOW_PLAIN_HTTP: setting(
    z.enum(['0', '1']).default('0'),
    '`1` allows sending keys, tokens and audio to another machine over plain HTTP, like `--allow-plain-http`',
  ),
};

/**
 * The settings with a secret that may be in a file instead. The file is read at the start, and one line end
 * at its end is not part of the secret.
 */
export const FILE_SETTINGS = {
  TAKEMARK_OPERATOR_TOKEN_FILE: 'TAKEMARK_OPERATOR_TOKEN',
  TAKEMARK_OPERATOR_TOKENS_FILE: 'TAKEMARK_OPERATOR_TOKENS',
  TAKEMARK_CASSANDRA_PASSWORD_FILE: 'TAKEMARK_CASSANDRA_PASSWORD',
  TAKEMARK_KAFKA_PASSWORD_FILE: 'TAKEMARK_KAFKA_PASSWORD',
  TAKEMARK_S3_ACCESS_KEY_FILE: 'TAKEMARK_S3_ACCESS_KEY',
  TAKEMARK_S3_SECRET_KEY_FILE: 'TAKEMARK_S3_SECRET_KEY',
  TAKEMARK_API_KEY_FILE: 'TAKEMARK_API_KEY',
} as const;

/** The files that a command reads which calls a service. It may not be allowed to read those of the servers. */
export const CLIENT_FILE_SETTINGS = {
  TAKEMARK_OPERATOR_TOKEN_FILE: FILE_SETTINGS.TAKEMARK_OPERATOR_TOKEN_FILE,
  TAKEMARK_API_KEY_FILE: FILE_SETTINGS.TAKEMARK_API_KEY_FILE,
} as const;

/** All settings, by section of the configuration page. */
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

/** The schema of every variable, by name. */
export const variables = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, { schema }]) => [name, schema]),
) as Schemas<typeof SETTINGS>;

/** The variables, parsed one by one, with their defaults. */
export type Values = z.output<z.ZodObject<typeof variables>>;
