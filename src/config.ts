import { isIP } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';

/** A configuration that cannot be used; the message lists every problem, one a line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Environment = Readonly<Record<string, string | undefined>>;

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

/**
 * Everything that may be set. A name with the prefix that is not here is most likely a spelling mistake:
 * reported at start.
 */
const variables = {
  /** Partner listener; 0 takes any free port. */
  TAKEMARK_PORT: portSchema.default(8080),
  TAKEMARK_HOST: z.string().min(1).default('0.0.0.0'),
  /** PEM files, both or none: with them the partner listener speaks TLS. Read again when they change. */
  TAKEMARK_TLS_CERT: z.string().min(1).optional(),
  TAKEMARK_TLS_KEY: z.string().min(1).optional(),
  TAKEMARK_OPERATOR_PORT: portSchema.default(8081),
  /** Rule 3.3. */
  TAKEMARK_OPERATOR_HOST: z.string().min(1).default('127.0.0.1'),
  /** Kept in a file of the data directory where it is not given. */
  TAKEMARK_OPERATOR_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 visible ASCII characters')
    .optional(),
  TAKEMARK_DATA_DIR: z.string().min(1).default('./takemark-data'),
  /**
   * Erasures and audit heads; `journals` in the data directory by default. On another volume, a restored
   * backup does not take them back.
   */
  TAKEMARK_JOURNAL_DIR: z.string().min(1).optional(),
  TAKEMARK_ENVIRONMENT: z.enum(['production', 'beta']).default('production'),
  /** Canonical address under which slots are posted to. */
  TAKEMARK_PUBLIC_URL: baseUrlSchema.optional(),
  TAKEMARK_STORE: z.enum(['embedded', 'cassandra']).default('embedded'),
  /**
   * `host:port` of some nodes, joined by commas; needed with TAKEMARK_STORE=cassandra, as is the data centre.
   */
  TAKEMARK_CASSANDRA: addressesSchema.optional(),
  TAKEMARK_CASSANDRA_DC: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be the name of a data centre')
    .optional(),
  /**
   * `takemark` where it is not given; `takemark_beta` in that environment, so that the two do not meet in one
   * cluster.
   */
  TAKEMARK_CASSANDRA_KEYSPACE: z
    .string()
    .regex(
      /^[a-z][a-z0-9_]{0,47}$/,
      'must be a letter and up to 47 letters, digits and underscores, in lower case',
    )
    .optional(),
  /** Replicas in the local data centre, of the keyspace that `takemark operator migrate` makes. */
  TAKEMARK_CASSANDRA_REPLICATION: countSchema(16).default(3),
  /** Both or none. */
  TAKEMARK_CASSANDRA_USERNAME: z.string().min(1).optional(),
  TAKEMARK_CASSANDRA_PASSWORD: z.string().min(1).optional(),
  /** PEM file of the authority that signed the nodes' certificates; with it the connection is encrypted. */
  TAKEMARK_CASSANDRA_TLS_CA: z.string().min(1).optional(),
  TAKEMARK_CASSANDRA_CONSISTENCY: z.enum(['LOCAL_QUORUM', 'QUORUM', 'ALL']).default('LOCAL_QUORUM'),
  TAKEMARK_CASSANDRA_SERIAL_CONSISTENCY: z.enum(['LOCAL_SERIAL', 'SERIAL']).default('LOCAL_SERIAL'),
  /**
   * What `takemark operator secrets init` wrote: one identity for all processes. Needed with
   * TAKEMARK_STORE=cassandra.
   */
  TAKEMARK_SECRETS_FILE: z.string().min(1).optional(),
  /** The same text itself, where a platform gives secrets as variables; instead of the file. */
  TAKEMARK_SECRETS: z.string().min(1).optional(),
  /**
   * `accept` takes rows and events without a code, or with another's: while a cluster is brought up from a
   * version that made none.
   */
  TAKEMARK_UNAUTHENTICATED: z.enum(['refuse', 'accept']).default('refuse'),
  TAKEMARK_BUS: z.enum(['embedded', 'kafka']).default('embedded'),
  /** `host:port` of some brokers, joined by commas; needed with TAKEMARK_BUS=kafka. */
  TAKEMARK_KAFKA: addressesSchema.optional(),
  /** Topics are `<prefix>.erasure` and so on; `takemark` or `takemark-beta` where it is not given. */
  TAKEMARK_KAFKA_PREFIX: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/,
      'must be up to 100 letters, digits, dots, underscores and dashes',
    )
    .optional(),
  /**
   * Of the topics that `takemark operator migrate` makes; never to be lowered or raised later, since keys
   * would move.
   */
  TAKEMARK_KAFKA_PARTITIONS: countSchema(1000).default(12),
  TAKEMARK_KAFKA_REPLICATION: countSchema(16).default(3),
  /** Both or none; SASL with SCRAM-SHA-512. */
  TAKEMARK_KAFKA_USERNAME: z.string().min(1).optional(),
  TAKEMARK_KAFKA_PASSWORD: z.string().min(1).optional(),
  /** PEM file of the authority that signed the brokers' certificates; with it the connection is encrypted. */
  TAKEMARK_KAFKA_TLS_CA: z.string().min(1).optional(),
  /** Events that may wait for the bus before calls that would add one are refused. */
  TAKEMARK_OUTBOX_LIMIT: countSchema(100_000_000).default(100_000),
  /** The code that a start names which found the store older than its audit heads. */
  TAKEMARK_ACCEPT_PUT_BACK: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  /** Whether the service runs the consumers too. */
  TAKEMARK_CONSUMERS: z.enum(['on', 'off']).optional(),
  TAKEMARK_ASSETS: z.enum(['directory', 's3']).default('directory'),
  /** Amazon's own where it is not given. */
  TAKEMARK_S3_ENDPOINT: baseUrlSchema.optional(),
  TAKEMARK_S3_REGION: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, 'must be the name of a region')
    .default('us-east-1'),
  TAKEMARK_S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket')
    .optional(),
  /** Before each object's name; `<environment>/assets/` where it is not given. */
  TAKEMARK_S3_PREFIX: z
    .string()
    .regex(
      /^(?:[A-Za-z0-9._-]{1,64}\/){1,8}$/,
      'must be letters, digits, dots, dashes and slashes, and end with a slash',
    )
    .optional(),
  /** Both or none; without them the platform's own identity is asked for. */
  TAKEMARK_S3_ACCESS_KEY: z.string().min(1).optional(),
  TAKEMARK_S3_SECRET_KEY: z.string().min(1).optional(),
  TAKEMARK_ENGINE: z.enum(['wasm', 'native']).default('wasm'),
  /**
   * Service processes of the cluster: each gives a partner its share of the plan's rate, burst, uploads and
   * rotations.
   */
  TAKEMARK_PROCESSES: countSchema(10_000).default(1),
  /** Uploads measured at once; the engine's own default where it is not given. */
  TAKEMARK_MAX_UPLOADS: countSchema(1024).optional(),
  TAKEMARK_WORKERS: countSchema(256).optional(),
  /** Open connections of each listener. */
  TAKEMARK_MAX_CONNECTIONS: countSchema(1_000_000).default(4096),
  /** MiB that may be held for callers before their worth is known, and for answers that they do not read. */
  TAKEMARK_INGRESS_MIB: countSchema(65_536).optional(),
  /**
   * Addresses and CIDR ranges, joined by commas, of the proxies in front whose X-Forwarded-For names the
   * caller.
   */
  TAKEMARK_TRUSTED_PROXIES: proxiesSchema.default([]),
  /** Seconds that requests in flight get when the service stops. */
  TAKEMARK_STOP_GRACE_SECONDS: countSchema(3600).default(30),
  TAKEMARK_SIGNING_ALGORITHM: z.enum(['Ed25519', 'ES256']).default('Ed25519'),
  /** PEM files, all three or none; the service makes its own identity otherwise. */
  TAKEMARK_SIGNING_CERT: z.string().min(1).optional(),
  TAKEMARK_SIGNING_KEY: z.string().min(1).optional(),
  TAKEMARK_SIGNING_AUTHORITY: z.string().min(1).optional(),
  /** Path of a PKCS#11 module whose token holds the key of the certificate that signs. */
  TAKEMARK_SIGNING_PKCS11: z.string().min(1).optional(),
  /** Labels of the token, and of the key pair in it. */
  TAKEMARK_SIGNING_PKCS11_TOKEN: z.string().min(1).max(32).optional(),
  TAKEMARK_SIGNING_PKCS11_KEY: z.string().min(1).max(128).default('takemark'),
  /** One of the two; the file's first line. */
  TAKEMARK_SIGNING_PKCS11_PIN: z.string().min(1).max(256).optional(),
  TAKEMARK_SIGNING_PKCS11_PIN_FILE: z.string().min(1).optional(),
  TAKEMARK_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  /** Second header name for the request id. */
  TAKEMARK_REQUEST_ID_HEADER: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a header name')
    .optional(),
  /** What `GET /download` redirects to. */
  TAKEMARK_DOWNLOADS: downloadsSchema.default({}),
  /** What `GET /health` reports. */
  TAKEMARK_COMMIT: z
    .string()
    .regex(/^[0-9A-Za-z._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots or dashes')
    .default('unknown'),
  TAKEMARK_DEPLOYED_AT: countSchema(9_999_999_999).optional(),
  /** For the command line and the client. */
  TAKEMARK_URL: baseUrlSchema.default('http://127.0.0.1:8080'),
  TAKEMARK_OPERATOR_URL: baseUrlSchema.default('http://127.0.0.1:8081'),
  TAKEMARK_API_KEY: z.string().min(1).optional(),
  /** PEM file of the private key that calls with the API key are signed with, where it needs signatures. */
  TAKEMARK_API_SIGNING_KEY: z.string().min(1).optional(),
  /** PEM file of the authorities that may vouch for the service; Node's own otherwise. */
  TAKEMARK_CA: z.string().min(1).optional(),
  /** Lets a key or token travel over plain HTTP to another machine. */
  TAKEMARK_ALLOW_PLAIN_HTTP: z.enum(['0', '1']).default('0'),
};

const schema = z.object(variables).superRefine((values, context) => {
  const inToken = values.TAKEMARK_SIGNING_PKCS11 !== undefined;
  const signing = [
    values.TAKEMARK_SIGNING_CERT,
    values.TAKEMARK_SIGNING_AUTHORITY,
    ...(inToken ? [] : [values.TAKEMARK_SIGNING_KEY]),
  ];
  if (signing.some((file) => file === undefined) && signing.some((file) => file !== undefined)) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_SIGNING_CERT'],
      message: inToken
        ? 'and TAKEMARK_SIGNING_AUTHORITY: both or none'
        : 'needs TAKEMARK_SIGNING_KEY and TAKEMARK_SIGNING_AUTHORITY too: all three or none',
    });
  }
  if (inToken && values.TAKEMARK_SIGNING_KEY !== undefined) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_SIGNING_KEY'],
      message: 'or TAKEMARK_SIGNING_PKCS11: the key is in a file or in a token',
    });
  }
  if (inToken && values.TAKEMARK_SIGNING_PKCS11_TOKEN === undefined) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_SIGNING_PKCS11_TOKEN'],
      message: 'is needed with TAKEMARK_SIGNING_PKCS11',
    });
  }
  if (
    inToken &&
    (values.TAKEMARK_SIGNING_PKCS11_PIN === undefined) ===
      (values.TAKEMARK_SIGNING_PKCS11_PIN_FILE === undefined)
  ) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_SIGNING_PKCS11_PIN'],
      message: 'or TAKEMARK_SIGNING_PKCS11_PIN_FILE is needed with TAKEMARK_SIGNING_PKCS11, one of them',
    });
  }
  if ((values.TAKEMARK_TLS_CERT === undefined) !== (values.TAKEMARK_TLS_KEY === undefined)) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_TLS_CERT'],
      message: 'and TAKEMARK_TLS_KEY: both or none',
    });
  }
  if (values.TAKEMARK_ASSETS === 's3' && values.TAKEMARK_S3_BUCKET === undefined) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_S3_BUCKET'],
      message: 'is needed with TAKEMARK_ASSETS=s3',
    });
  }
  if ((values.TAKEMARK_S3_ACCESS_KEY === undefined) !== (values.TAKEMARK_S3_SECRET_KEY === undefined)) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_S3_ACCESS_KEY'],
      message: 'and TAKEMARK_S3_SECRET_KEY: both or none',
    });
  }
  if (values.TAKEMARK_STORE === 'cassandra') {
    // Rule 16.1.
    const needed = [
      'TAKEMARK_CASSANDRA',
      'TAKEMARK_CASSANDRA_DC',
      ...(values.TAKEMARK_SECRETS === undefined ? (['TAKEMARK_SECRETS_FILE'] as const) : []),
    ] as const;
    for (const name of needed) {
      if (values[name] === undefined)
        context.addIssue({
          code: 'custom',
          path: [name],
          message: 'is needed with TAKEMARK_STORE=cassandra',
        });
    }
  }
  if (values.TAKEMARK_SECRETS_FILE !== undefined && values.TAKEMARK_SECRETS !== undefined) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_SECRETS'],
      message: 'or TAKEMARK_SECRETS_FILE: not both',
    });
  }
  if (
    values.TAKEMARK_STORE === 'cassandra' &&
    values.TAKEMARK_BUS === 'kafka' &&
    values.TAKEMARK_ASSETS !== 's3'
  ) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_ASSETS'],
      message:
        'must be s3 with TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka: a process could not remove what lies in the directory of another',
    });
  }
  if (values.TAKEMARK_STORE === 'embedded' && values.TAKEMARK_CONSUMERS === 'off') {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_CONSUMERS'],
      message: 'must be on with TAKEMARK_STORE=embedded: no other process has the store',
    });
  }
  if (values.TAKEMARK_BUS === 'kafka' && values.TAKEMARK_KAFKA === undefined) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_KAFKA'],
      message: 'is needed with TAKEMARK_BUS=kafka',
    });
  }
  if ((values.TAKEMARK_KAFKA_USERNAME === undefined) !== (values.TAKEMARK_KAFKA_PASSWORD === undefined)) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_KAFKA_USERNAME'],
      message: 'and TAKEMARK_KAFKA_PASSWORD: both or none',
    });
  }
  if (
    values.TAKEMARK_STORE === 'cassandra' &&
    values.TAKEMARK_BUS === 'embedded' &&
    values.TAKEMARK_CONSUMERS === 'off'
  ) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_CONSUMERS'],
      message: 'must be on with TAKEMARK_BUS=embedded: no other process could take the events',
    });
  }
  if (
    (values.TAKEMARK_CASSANDRA_USERNAME === undefined) !==
    (values.TAKEMARK_CASSANDRA_PASSWORD === undefined)
  ) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_CASSANDRA_USERNAME'],
      message: 'and TAKEMARK_CASSANDRA_PASSWORD: both or none',
    });
  }
  if (values.TAKEMARK_PORT !== 0 && values.TAKEMARK_PORT === values.TAKEMARK_OPERATOR_PORT) {
    context.addIssue({
      code: 'custom',
      path: ['TAKEMARK_OPERATOR_PORT'],
      message: 'must differ from TAKEMARK_PORT',
    });
  }
});

export interface CassandraConfig {
  /** `host:port` each. */
  readonly contactPoints: readonly string[];
  readonly localDataCenter: string;
  readonly keyspace: string;
  readonly replication: number;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Path of a PEM file. */
  readonly tls?: { readonly authority: string };
  readonly consistency: 'LOCAL_QUORUM' | 'QUORUM' | 'ALL';
  readonly serialConsistency: 'LOCAL_SERIAL' | 'SERIAL';
}

export interface KafkaConfig {
  /** `host:port` each. */
  readonly brokers: readonly string[];
  readonly prefix: string;
  readonly partitions: number;
  readonly replication: number;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Path of a PEM file. */
  readonly tls?: { readonly authority: string };
}

export interface Config {
  readonly partner: {
    readonly port: number;
    readonly host: string /** Paths of PEM files; undefined for plain HTTP. */;
    readonly tls: { readonly certificate: string; readonly key: string } | undefined;
  };
  readonly operator: { readonly port: number; readonly host: string; readonly token: string | undefined };
  readonly dataDirectory: string;
  readonly journalDirectory: string;
  readonly environment: 'production' | 'beta';
  /** Without a trailing slash. Undefined: this machine, at the port that was bound. */
  readonly publicUrl: string | undefined;
  readonly store: 'embedded' | 'cassandra';
  /** Undefined where no nodes are named. */
  readonly cassandra: CassandraConfig | undefined;
  /** The bundle that all processes of a cluster share: its path, or the bundle itself. */
  readonly secrets: { readonly file: string } | { readonly text: string } | undefined;
  /** That share a plan's rates. */
  readonly processes: number;
  /** Whether rows and events that nobody vouches for are taken. */
  readonly acceptUnauthenticated: boolean;
  /** Servers of the cluster, not of this machine alone, that are spoken to in plain text. */
  readonly plainServers: readonly ('cassandra' | 'kafka')[];
  readonly bus: 'embedded' | 'kafka';
  /** Undefined where no brokers are named. */
  readonly kafka: KafkaConfig | undefined;
  /** Events that may wait to be published. */
  readonly outboxLimit: number;
  /** Names the state of a store that was put back on purpose. */
  readonly acceptPutBack: string | undefined;
  /** Whether the service runs the consumers in its own process. */
  readonly consumers: boolean;
  /** Deliverables: undefined for a directory of the data directory. */
  readonly assetBucket:
    | {
        readonly endpoint: string | undefined;
        readonly region: string;
        readonly bucket: string;
        readonly prefix: string;
        readonly credentials: { readonly accessKey: string; readonly secretKey: string } | undefined;
      }
    | undefined;
  readonly engine: {
    readonly kind: 'wasm' | 'native';
    readonly maxUploads: number | undefined;
    readonly workers: number | undefined;
  };
  readonly maxConnections: number;
  /** Undefined: a part of the memory that the process has. */
  readonly ingressBytes: number | undefined;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  readonly stopGraceMs: number;
  readonly signing: {
    readonly algorithm: 'Ed25519' | 'ES256';
    /** Paths of PEM files. */
    readonly files:
      | { readonly certificate: string; readonly key?: string; readonly authority: string }
      | undefined;
    readonly pkcs11:
      | {
          readonly module: string;
          readonly token: string;
          readonly key: string;
          readonly pin: { readonly text: string } | { readonly file: string };
          /**
           * For the module's process: what this one was given, but for settings of the service and of its
           * bucket.
           */
          readonly environment: Readonly<Record<string, string>>;
        }
      | undefined;
  };
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  readonly requestIdHeader: string | undefined;
  /** By `product/platform`. */
  readonly downloads: ReadonlyMap<string, string>;
  /** Names with the prefix that are no setting. */
  readonly unknown: readonly string[];
  readonly build: { readonly commit: string /** Unix seconds. */; readonly deployedAt: number | undefined };
  /** What the command line needs to reach a service. */
  readonly client: {
    readonly url: string;
    readonly operatorUrl: string;
    readonly operatorToken: string | undefined;
    readonly apiKey: string | undefined /** Paths of PEM files. */;
    readonly signingKey?: string | undefined;
    readonly ca: string | undefined;
    readonly allowPlainHttp: boolean;
  };
}

/**
 * Reads the configuration; the only reader of the environment. An empty variable counts as not set.
 * @throws ConfigError naming each variable that is wrong, without its value
 */
export function readConfig(environment: Environment = process.env): Config {
  const given = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => name.startsWith('TAKEMARK_') && value !== undefined && value !== '',
    ),
  );
  const result = schema.safeParse(given);
  if (!result.success)
    throw new ConfigError(
      result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'),
    );
  const values = result.data;
  const {
    TAKEMARK_SIGNING_CERT: certificate,
    TAKEMARK_SIGNING_KEY: key,
    TAKEMARK_SIGNING_AUTHORITY: authority,
  } = values;
  const { TAKEMARK_TLS_CERT: tlsCertificate, TAKEMARK_TLS_KEY: tlsKey } = values;
  const tls =
    tlsCertificate === undefined || tlsKey === undefined
      ? undefined
      : { certificate: tlsCertificate, key: tlsKey };
  return {
    partner: { port: values.TAKEMARK_PORT, host: values.TAKEMARK_HOST, tls },
    operator: {
      port: values.TAKEMARK_OPERATOR_PORT,
      host: values.TAKEMARK_OPERATOR_HOST,
      token: values.TAKEMARK_OPERATOR_TOKEN,
    },
    dataDirectory: values.TAKEMARK_DATA_DIR,
    journalDirectory: values.TAKEMARK_JOURNAL_DIR ?? join(values.TAKEMARK_DATA_DIR, 'journals'),
    environment: values.TAKEMARK_ENVIRONMENT,
    publicUrl:
      values.TAKEMARK_PUBLIC_URL ??
      (values.TAKEMARK_PORT === 0
        ? undefined
        : `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${values.TAKEMARK_PORT}`),
    store: values.TAKEMARK_STORE,
    cassandra: cassandraOf(values),
    secrets:
      values.TAKEMARK_SECRETS_FILE !== undefined
        ? { file: values.TAKEMARK_SECRETS_FILE }
        : values.TAKEMARK_SECRETS !== undefined
          ? { text: values.TAKEMARK_SECRETS }
          : undefined,
    processes: values.TAKEMARK_PROCESSES,
    acceptUnauthenticated: values.TAKEMARK_UNAUTHENTICATED === 'accept',
    plainServers: plainServersOf(values),
    bus: values.TAKEMARK_BUS,
    kafka: kafkaOf(values),
    outboxLimit: values.TAKEMARK_OUTBOX_LIMIT,
    acceptPutBack: values.TAKEMARK_ACCEPT_PUT_BACK,
    consumers:
      values.TAKEMARK_CONSUMERS === undefined
        ? values.TAKEMARK_STORE === 'embedded' || values.TAKEMARK_BUS === 'embedded'
        : values.TAKEMARK_CONSUMERS === 'on',
    assetBucket: values.TAKEMARK_ASSETS === 's3' ? bucketOf(values) : undefined,
    engine: {
      kind: values.TAKEMARK_ENGINE,
      maxUploads: values.TAKEMARK_MAX_UPLOADS,
      workers: values.TAKEMARK_WORKERS,
    },
    maxConnections: values.TAKEMARK_MAX_CONNECTIONS,
    ingressBytes:
      values.TAKEMARK_INGRESS_MIB === undefined ? undefined : values.TAKEMARK_INGRESS_MIB * 1_048_576,
    trustedProxies: values.TAKEMARK_TRUSTED_PROXIES,
    stopGraceMs: values.TAKEMARK_STOP_GRACE_SECONDS * 1000,
    signing: {
      algorithm: values.TAKEMARK_SIGNING_ALGORITHM,
      files:
        certificate === undefined || authority === undefined
          ? undefined
          : { certificate, ...(key === undefined ? {} : { key }), authority },
      pkcs11: pkcs11Of(values, environment),
    },
    logLevel: values.TAKEMARK_LOG_LEVEL,
    requestIdHeader: values.TAKEMARK_REQUEST_ID_HEADER,
    downloads: new Map(Object.entries(values.TAKEMARK_DOWNLOADS)),
    unknown: Object.keys(given).filter((name) => !Object.hasOwn(variables, name)),
    build: { commit: values.TAKEMARK_COMMIT, deployedAt: values.TAKEMARK_DEPLOYED_AT },
    client: {
      url: values.TAKEMARK_URL,
      operatorUrl: values.TAKEMARK_OPERATOR_URL,
      operatorToken: values.TAKEMARK_OPERATOR_TOKEN,
      apiKey: values.TAKEMARK_API_KEY,
      signingKey: values.TAKEMARK_API_SIGNING_KEY,
      ca: values.TAKEMARK_CA,
      allowPlainHttp: values.TAKEMARK_ALLOW_PLAIN_HTTP === '1',
    },
  };
}

function cassandraOf(values: z.output<typeof schema>): CassandraConfig | undefined {
  const {
    TAKEMARK_CASSANDRA: contactPoints,
    TAKEMARK_CASSANDRA_DC: localDataCenter,
    TAKEMARK_CASSANDRA_USERNAME: username,
    TAKEMARK_CASSANDRA_PASSWORD: password,
    TAKEMARK_CASSANDRA_TLS_CA: authority,
  } = values;
  if (contactPoints === undefined || localDataCenter === undefined) return undefined;
  return {
    contactPoints,
    localDataCenter,
    keyspace:
      values.TAKEMARK_CASSANDRA_KEYSPACE ??
      (values.TAKEMARK_ENVIRONMENT === 'beta' ? 'takemark_beta' : 'takemark'),
    replication: values.TAKEMARK_CASSANDRA_REPLICATION,
    ...(username === undefined || password === undefined ? {} : { credentials: { username, password } }),
    ...(authority === undefined ? {} : { tls: { authority } }),
    consistency: values.TAKEMARK_CASSANDRA_CONSISTENCY,
    serialConsistency: values.TAKEMARK_CASSANDRA_SERIAL_CONSISTENCY,
  };
}

function pkcs11Of(values: z.output<typeof schema>, environment: Environment): Config['signing']['pkcs11'] {
  const {
    TAKEMARK_SIGNING_PKCS11: module,
    TAKEMARK_SIGNING_PKCS11_TOKEN: token,
    TAKEMARK_SIGNING_PKCS11_KEY: key,
    TAKEMARK_SIGNING_PKCS11_PIN: text,
    TAKEMARK_SIGNING_PKCS11_PIN_FILE: file,
  } = values;
  if (module === undefined || token === undefined) return undefined;
  const others = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(?:TAKEMARK|AWS|NODE)_/.test(entry[0]),
  );
  return {
    module,
    token,
    key,
    pin: file === undefined ? { text: text! } : { file },
    environment: Object.fromEntries(others),
  };
}

function plainServersOf(values: z.output<typeof schema>): Config['plainServers'] {
  const isPlain = (addresses: readonly string[] | undefined, authority: string | undefined): boolean =>
    authority === undefined && addresses?.some((address) => !isLoopback(address)) === true;
  return [
    ...(values.TAKEMARK_STORE === 'cassandra' &&
    isPlain(values.TAKEMARK_CASSANDRA, values.TAKEMARK_CASSANDRA_TLS_CA)
      ? (['cassandra'] as const)
      : []),
    ...(values.TAKEMARK_BUS === 'kafka' && isPlain(values.TAKEMARK_KAFKA, values.TAKEMARK_KAFKA_TLS_CA)
      ? (['kafka'] as const)
      : []),
  ];
}

/** @param address `host:port` */
function isLoopback(address: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)(?::\d+)?$/.test(address);
}

function kafkaOf(values: z.output<typeof schema>): KafkaConfig | undefined {
  const {
    TAKEMARK_KAFKA: brokers,
    TAKEMARK_KAFKA_USERNAME: username,
    TAKEMARK_KAFKA_PASSWORD: password,
    TAKEMARK_KAFKA_TLS_CA: authority,
  } = values;
  if (brokers === undefined) return undefined;
  return {
    brokers,
    prefix:
      values.TAKEMARK_KAFKA_PREFIX ?? (values.TAKEMARK_ENVIRONMENT === 'beta' ? 'takemark-beta' : 'takemark'),
    partitions: values.TAKEMARK_KAFKA_PARTITIONS,
    replication: values.TAKEMARK_KAFKA_REPLICATION,
    ...(username === undefined || password === undefined ? {} : { credentials: { username, password } }),
    ...(authority === undefined ? {} : { tls: { authority } }),
  };
}

function bucketOf(values: z.output<typeof schema>): Config['assetBucket'] {
  const { TAKEMARK_S3_ACCESS_KEY: accessKey, TAKEMARK_S3_SECRET_KEY: secretKey } = values;
  return {
    endpoint: values.TAKEMARK_S3_ENDPOINT,
    region: values.TAKEMARK_S3_REGION,
    bucket: values.TAKEMARK_S3_BUCKET!,
    prefix: values.TAKEMARK_S3_PREFIX ?? `${values.TAKEMARK_ENVIRONMENT}/assets/`,
    credentials: accessKey === undefined || secretKey === undefined ? undefined : { accessKey, secretKey },
  };
}
