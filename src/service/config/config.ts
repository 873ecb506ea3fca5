import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { defined } from '../../core/domain/defined.js';
import { CONFLICTS } from './conflicts.js';
import { FILE_SETTINGS, type Values, variables } from './settings.js';
import { type UnknownSettings, unknownSettings } from './unknown-settings.js';

/** An invalid configuration. The message lists one problem per line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Environment = Readonly<Record<string, string | undefined>>;

const schema = z.object(variables).superRefine((values, context) => {
  for (const { name, message, holds } of CONFLICTS)
    if (holds(values)) context.addIssue({ code: 'custom', path: [name], message });
});

/** The configuration of a process. Optional members are omitted if they are not set. */
export type Config = ReturnType<typeof configOf>;

/**
 * Reads the configuration. No other code reads the environment. An empty variable counts as not set.
 * @param files the settings whose files are read, with the setting of each
 * @throws ConfigError with the name of each invalid variable, without its value
 */
export function readConfig(
  environment: Environment = process.env,
  files: Readonly<Record<string, string>> = FILE_SETTINGS,
): Config {
  const given = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => name.startsWith('TAKEMARK_') && value !== undefined && value !== '',
    ),
  );
  readSecretFiles(given, files);
  const result = schema.safeParse(given);
  if (!result.success)
    throw new ConfigError(
      result.error.issues.map((issue) => `${issue.path.join('.')}: ${problemOf(issue)}`).join('\n'),
    );
  return configOf(result.data, environment, unknownSettings(given, Object.keys(variables)));
}

function problemOf(issue: z.core.$ZodIssue): string {
  return issue.code === 'invalid_value' ? `must be one of ${issue.values.join(', ')}` : issue.message;
}

/**
 * Sets each secret that a variable names a file for.
 * @throws ConfigError
 */
function readSecretFiles(
  given: Record<string, string | undefined>,
  files: Readonly<Record<string, string>>,
): void {
  const problems = Object.entries(files).flatMap(([fileName, name]) => {
    const path = given[fileName];
    if (path === undefined) return [];
    if (given[name] !== undefined) return [`${fileName}: excludes ${name}: set only one of them`];
    try {
      const secret = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
      if (secret === '') return [`${fileName}: the file is empty`];
      given[name] = secret;
      return [];
    } catch (error) {
      return [
        `${fileName}: the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`,
      ];
    }
  });
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}

/**
 * Refuses to start a process with a misspelt setting, unless the configuration says to warn only. The command
 * line does not call it.
 * @throws ConfigError that names each variable and the most similar setting
 */
export function assertKnownSettings({ unknown, unknownSettings: policy }: Config): void {
  if (policy === 'warn' || unknown.misspelt.length === 0) return;
  throw new ConfigError(
    unknown.misspelt
      .map(
        ({ name, nearest }) =>
          `${name}: is not a setting; the most similar one is ${nearest}. To start all the same, set TAKEMARK_UNKNOWN_SETTINGS=warn`,
      )
      .join('\n'),
  );
}

function configOf(values: Values, environment: Environment, unknown: UnknownSettings) {
  const tls = pair(values.TAKEMARK_TLS_CERT, values.TAKEMARK_TLS_KEY, (certificate, key) => ({
    certificate,
    key,
  }));
  return defined({
    partner: defined({
      port: values.TAKEMARK_PORT,
      // Keys and audio must not travel in clear only because no address was chosen.
      host: values.TAKEMARK_HOST ?? (tls === undefined ? '127.0.0.1' : '0.0.0.0'),
      /** True if no setting names the address of the listener. */
      isHostDefault: values.TAKEMARK_HOST === undefined,
      tls,
    }),
    operator: defined({
      port: values.TAKEMARK_OPERATOR_PORT,
      host: values.TAKEMARK_OPERATOR_HOST,
      token: values.TAKEMARK_OPERATOR_TOKEN,
      namedTokens: values.TAKEMARK_OPERATOR_TOKENS,
      /** Host names that probes and metrics accept. A leading dot accepts every name with this ending. */
      names: values.TAKEMARK_OPERATOR_NAMES,
    }),
    dataDirectory: values.TAKEMARK_DATA_DIR,
    journalDirectory: values.TAKEMARK_JOURNAL_DIR ?? join(values.TAKEMARK_DATA_DIR, 'journals'),
    contentKeysDirectory: values.TAKEMARK_CONTENT_KEYS_DIR ?? join(values.TAKEMARK_DATA_DIR, 'content-keys'),
    /** The directories of the second copies of keys and journals. */
    mirror: values.TAKEMARK_MIRROR_DIR === undefined ? undefined : mirrorOf(values.TAKEMARK_MIRROR_DIR),
    environment: values.TAKEMARK_ENVIRONMENT,
    /** The public URL without a trailing slash. If absent, it is this machine at the bound port. */
    publicUrl: publicUrlOf(values, tls !== undefined),
    store: values.TAKEMARK_STORE,
    cassandra: cassandraOf(values),
    /** The secrets bundle that all processes of a cluster share: its path or its text. */
    secrets: bundleOf(values),
    /** The number of processes that share a plan's rates. If absent, a cluster counts them. */
    processes: values.TAKEMARK_PROCESSES,
    /** Accepts rows and events without a valid MAC. Used only while migrating. */
    acceptUnauthenticated: values.TAKEMARK_UNAUTHENTICATED === 'accept',
    /** The servers on other machines that are called without TLS. */
    plainServers: plainServersOf(values),
    /** The names of server checks whose refusal is only a warning. */
    acceptedChecks: values.TAKEMARK_ACCEPT_SERVERS,
    bus: values.TAKEMARK_BUS,
    kafka: kafkaOf(values),
    /** The maximum number of events that may wait to be published. */
    outboxLimit: values.TAKEMARK_OUTBOX_LIMIT,
    auditRate: values.TAKEMARK_AUDIT_RATE,
    samplesRate: values.TAKEMARK_SAMPLES_FILL_MIB * 1_048_576,
    /** The code that accepts the state of an intentionally restored store. */
    acceptPutBack: values.TAKEMARK_ACCEPT_PUT_BACK,
    /** The code that accepts a loss of the content keys. */
    acceptLostKeys: values.TAKEMARK_ACCEPT_LOST_KEYS,
    /** True if the service runs the consumers in its own process. */
    consumers:
      values.TAKEMARK_CONSUMERS === undefined
        ? values.TAKEMARK_STORE === 'embedded' || values.TAKEMARK_BUS === 'embedded'
        : values.TAKEMARK_CONSUMERS === 'on',
    /** The bucket of the assets. If absent, assets are stored in the data directory. */
    assetBucket: values.TAKEMARK_ASSETS === 's3' ? bucketOf(values) : undefined,
    engine: defined({
      kind: values.TAKEMARK_ENGINE,
      eightLanes: values.TAKEMARK_EIGHT_LANES === 'on',
      maxUploads: values.TAKEMARK_MAX_UPLOADS,
      workers: values.TAKEMARK_WORKERS,
    }),
    /** The largest file of a large purpose, in bytes. */
    largeBytes: values.TAKEMARK_MAX_LARGE_MIB * 1_048_576,
    maxConnections: values.TAKEMARK_MAX_CONNECTIONS,
    /** In bytes. If absent, it is a share of the memory of the process. */
    ingressBytes:
      values.TAKEMARK_INGRESS_MIB === undefined ? undefined : values.TAKEMARK_INGRESS_MIB * 1_048_576,
    /** Addresses and CIDR ranges. */
    trustedProxies: values.TAKEMARK_TRUSTED_PROXIES,
    drainMs: values.TAKEMARK_DRAIN_SECONDS * 1000,
    stopGraceMs: values.TAKEMARK_STOP_GRACE_SECONDS * 1000,
    signing: defined({
      algorithm: values.TAKEMARK_SIGNING_ALGORITHM,
      /** The paths of PEM files. The key is omitted if a token holds it. */
      files: pair(values.TAKEMARK_SIGNING_CERT, values.TAKEMARK_SIGNING_AUTHORITY, (certificate, authority) =>
        defined({ certificate, key: values.TAKEMARK_SIGNING_KEY, authority }),
      ),
      pkcs11: pkcs11Of(values, environment),
    }),
    logLevel: values.TAKEMARK_LOG_LEVEL,
    logFormat: values.TAKEMARK_LOG_FORMAT,
    /** True if request lines have the caller's address. */
    logsAddresses: values.TAKEMARK_LOG_ADDRESSES === '1',
    requestIdHeader: values.TAKEMARK_REQUEST_ID_HEADER,
    /** The addresses by `product/platform`. */
    downloads: new Map(Object.entries(values.TAKEMARK_DOWNLOADS)) as ReadonlyMap<string, string>,
    unknown,
    unknownSettings: values.TAKEMARK_UNKNOWN_SETTINGS,
    /** `deployedAt` in unix seconds. */
    build: defined({ commit: values.TAKEMARK_COMMIT, deployedAt: values.TAKEMARK_DEPLOYED_AT }),
    /** The settings that the command line needs to call a service. */
    client: defined({
      url: values.TAKEMARK_URL,
      operatorUrl: values.TAKEMARK_OPERATOR_URL,
      operatorToken: values.TAKEMARK_OPERATOR_TOKEN,
      /** The name of a profile of the command line. */
      profile: values.TAKEMARK_PROFILE,
      apiKey: values.TAKEMARK_API_KEY,
      /** The path of a PEM file, as is `ca`. */
      signingKey: values.TAKEMARK_API_SIGNING_KEY,
      ca: values.TAKEMARK_CA,
      allowPlainHttp: values.TAKEMARK_ALLOW_PLAIN_HTTP === '1',
      /** False if the data directory is the default below the current directory. */
      dataDirectoryNamed: (environment['TAKEMARK_DATA_DIR'] ?? '') !== '',
    }),
  });
}

function mirrorOf(directory: string) {
  return { directory, contentKeys: join(directory, 'content-keys'), journals: join(directory, 'journals') };
}

/** Combines two settings that belong together. Returns undefined if one is missing. */
function pair<Value>(
  one: string | undefined,
  other: string | undefined,
  make: (one: string, other: string) => Value,
): Value | undefined {
  return one === undefined || other === undefined ? undefined : make(one, other);
}

function publicUrlOf(values: Values, isEncrypted: boolean): string | undefined {
  const { TAKEMARK_PUBLIC_URL: given, TAKEMARK_PORT: port } = values;
  if (given !== undefined) return given;
  return port === 0 ? undefined : `${isEncrypted ? 'https' : 'http'}://127.0.0.1:${port}`;
}

function bundleOf(values: Values): { readonly file: string } | { readonly text: string } | undefined {
  const { TAKEMARK_SECRETS_FILE: file, TAKEMARK_SECRETS: text } = values;
  if (file !== undefined) return { file };
  return text === undefined ? undefined : { text };
}

/** Returns the user name and password for a server, or undefined if they are not set. */
function credentialsOf(username: string | undefined, password: string | undefined) {
  return pair(username, password, (username, password) => ({ username, password }));
}

/** Returns the path of the PEM file of a server's certificate authority. */
function tlsOf(authority: string | undefined): { readonly authority: string } | undefined {
  return authority === undefined ? undefined : { authority };
}

/** Returns the settings of Cassandra, or undefined if no nodes are named. */
function cassandraOf(values: Values) {
  const { TAKEMARK_CASSANDRA: contactPoints, TAKEMARK_CASSANDRA_DC: localDataCenter } = values;
  if (contactPoints === undefined || localDataCenter === undefined) return undefined;
  const isBeta = values.TAKEMARK_ENVIRONMENT === 'beta';
  return defined({
    contactPoints,
    localDataCenter,
    // Different defaults, so that the two environments never share a keyspace.
    keyspace: values.TAKEMARK_CASSANDRA_KEYSPACE ?? (isBeta ? 'takemark_beta' : 'takemark'),
    replication: values.TAKEMARK_CASSANDRA_REPLICATION,
    credentials: credentialsOf(values.TAKEMARK_CASSANDRA_USERNAME, values.TAKEMARK_CASSANDRA_PASSWORD),
    tls: tlsOf(values.TAKEMARK_CASSANDRA_TLS_CA),
    topology: values.TAKEMARK_CASSANDRA_TOPOLOGY,
  });
}

/** Returns the settings of Kafka, or undefined if no brokers are named. */
function kafkaOf(values: Values) {
  const { TAKEMARK_KAFKA: brokers } = values;
  if (brokers === undefined) return undefined;
  const isBeta = values.TAKEMARK_ENVIRONMENT === 'beta';
  return defined({
    brokers,
    prefix: values.TAKEMARK_KAFKA_PREFIX ?? (isBeta ? 'takemark-beta' : 'takemark'),
    partitions: values.TAKEMARK_KAFKA_PARTITIONS,
    replication: values.TAKEMARK_KAFKA_REPLICATION,
    credentials: credentialsOf(values.TAKEMARK_KAFKA_USERNAME, values.TAKEMARK_KAFKA_PASSWORD),
    tls: tlsOf(values.TAKEMARK_KAFKA_TLS_CA),
  });
}

function bucketOf(values: Values) {
  return defined({
    endpoint: values.TAKEMARK_S3_ENDPOINT,
    region: values.TAKEMARK_S3_REGION,
    bucket: values.TAKEMARK_S3_BUCKET!,
    prefix: values.TAKEMARK_S3_PREFIX ?? `${values.TAKEMARK_ENVIRONMENT}/assets/`,
    credentials: pair(
      values.TAKEMARK_S3_ACCESS_KEY,
      values.TAKEMARK_S3_SECRET_KEY,
      (accessKey, secretKey) => ({ accessKey, secretKey }),
    ),
  });
}

/** Returns the settings of the PKCS#11 token, or undefined if the keys are in files. */
function pkcs11Of(values: Values, environment: Environment) {
  const {
    TAKEMARK_SIGNING_PKCS11: module,
    TAKEMARK_SIGNING_PKCS11_TOKEN: token,
    TAKEMARK_SIGNING_PKCS11_PIN: text,
    TAKEMARK_SIGNING_PKCS11_PIN_FILE: file,
  } = values;
  if (module === undefined || token === undefined) return undefined;
  const pin: { readonly text: string } | { readonly file: string } =
    file === undefined ? { text: text! } : { file };
  // The environment of this process without the settings of the service and of its bucket.
  const others = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(?:TAKEMARK|AWS|NODE)_/.test(entry[0]),
  );
  return {
    module,
    token,
    key: values.TAKEMARK_SIGNING_PKCS11_KEY,
    pin,
    /** The environment variables of the process that loads the module. */
    environment: Object.fromEntries(others) as Readonly<Record<string, string>>,
  };
}

function plainServersOf(values: Values): readonly ('cassandra' | 'kafka')[] {
  const isPlain = (addresses: readonly string[] | undefined, authority: string | undefined): boolean =>
    authority === undefined && addresses?.some((address) => !isLoopback(address)) === true;
  const plain: ('cassandra' | 'kafka')[] = [];
  if (
    values.TAKEMARK_STORE === 'cassandra' &&
    isPlain(values.TAKEMARK_CASSANDRA, values.TAKEMARK_CASSANDRA_TLS_CA)
  )
    plain.push('cassandra');
  if (values.TAKEMARK_BUS === 'kafka' && isPlain(values.TAKEMARK_KAFKA, values.TAKEMARK_KAFKA_TLS_CA))
    plain.push('kafka');
  return plain;
}

/** @param address `host:port` */
function isLoopback(address: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)(?::\d+)?$/.test(address);
}
