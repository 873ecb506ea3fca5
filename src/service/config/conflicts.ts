import type { Values } from './settings.js';

type Name = keyof Values;

/** Settings that exclude each other, or that need each other. */
interface Conflict {
  /** The variable at the start of the message. */
  readonly name: Name;
  readonly message: string;
  readonly holds: (values: Values) => boolean;
}

const isSet = (values: Values, name: Name): boolean => values[name] !== undefined;
const isCluster = (values: Values): boolean => values.TAKEMARK_STORE === 'cassandra';
const isInToken = (values: Values): boolean => isSet(values, 'TAKEMARK_SIGNING_PKCS11');

function bothOrNone(name: Name, other: Name): Conflict {
  return {
    name,
    message: `and ${other}: set both or neither`,
    holds: (values) => isSet(values, name) !== isSet(values, other),
  };
}

function needed(name: Name, where: string, holds: (values: Values) => boolean): Conflict {
  return {
    name,
    message: `is required with ${where}`,
    holds: (values) => holds(values) && !isSet(values, name),
  };
}

/** Returns true if some but not all required files of a signing identity are named. */
function isHalfSigning(values: Values): boolean {
  const names: readonly Name[] = [
    'TAKEMARK_SIGNING_CERT',
    'TAKEMARK_SIGNING_AUTHORITY',
    ...(isInToken(values) ? [] : (['TAKEMARK_SIGNING_KEY'] as const)),
  ];
  const set = names.filter((name) => isSet(values, name));
  return set.length > 0 && set.length < names.length;
}

/** The conflicts in the order of their checks. A start reports every conflict that applies. */
export const CONFLICTS: readonly Conflict[] = [
  {
    name: 'TAKEMARK_SIGNING_CERT',
    message: 'and TAKEMARK_SIGNING_AUTHORITY: set both or neither',
    holds: (values) => isInToken(values) && isHalfSigning(values),
  },
  {
    name: 'TAKEMARK_SIGNING_CERT',
    message: 'with TAKEMARK_SIGNING_KEY and TAKEMARK_SIGNING_AUTHORITY: set all three or none',
    holds: (values) => !isInToken(values) && isHalfSigning(values),
  },
  {
    name: 'TAKEMARK_SIGNING_KEY',
    message: 'excludes TAKEMARK_SIGNING_PKCS11: the key is either in a file or in a token',
    holds: (values) => isInToken(values) && isSet(values, 'TAKEMARK_SIGNING_KEY'),
  },
  needed('TAKEMARK_SIGNING_PKCS11_TOKEN', 'TAKEMARK_SIGNING_PKCS11', isInToken),
  {
    name: 'TAKEMARK_SIGNING_PKCS11_PIN',
    message: 'or TAKEMARK_SIGNING_PKCS11_PIN_FILE is required with TAKEMARK_SIGNING_PKCS11: set exactly one',
    holds: (values) =>
      isInToken(values) &&
      isSet(values, 'TAKEMARK_SIGNING_PKCS11_PIN') === isSet(values, 'TAKEMARK_SIGNING_PKCS11_PIN_FILE'),
  },
  bothOrNone('TAKEMARK_TLS_CERT', 'TAKEMARK_TLS_KEY'),
  needed('TAKEMARK_S3_BUCKET', 'TAKEMARK_ASSETS=s3', (values) => values.TAKEMARK_ASSETS === 's3'),
  bothOrNone('TAKEMARK_S3_ACCESS_KEY', 'TAKEMARK_S3_SECRET_KEY'),
  needed('TAKEMARK_CASSANDRA', 'TAKEMARK_STORE=cassandra', isCluster),
  needed('TAKEMARK_CASSANDRA_DC', 'TAKEMARK_STORE=cassandra', isCluster),
  // A process of a cluster must not create its own identity (rule 16.1).
  needed(
    'TAKEMARK_SECRETS_FILE',
    'TAKEMARK_STORE=cassandra',
    (values) => isCluster(values) && !isSet(values, 'TAKEMARK_SECRETS'),
  ),
  {
    name: 'TAKEMARK_SECRETS',
    message: 'excludes TAKEMARK_SECRETS_FILE: set only one of them',
    holds: (values) => isSet(values, 'TAKEMARK_SECRETS_FILE') && isSet(values, 'TAKEMARK_SECRETS'),
  },
  {
    name: 'TAKEMARK_ASSETS',
    message:
      'must be s3 with TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka: a process cannot delete files in the directory of another process',
    holds: (values) =>
      isCluster(values) && values.TAKEMARK_BUS === 'kafka' && values.TAKEMARK_ASSETS !== 's3',
  },
  {
    name: 'TAKEMARK_CONSUMERS',
    message: 'must be on with TAKEMARK_STORE=embedded: no other process can open the store',
    holds: (values) => !isCluster(values) && values.TAKEMARK_CONSUMERS === 'off',
  },
  {
    name: 'TAKEMARK_MIRROR_DIR',
    message: 'excludes TAKEMARK_STORE=cassandra: a cluster has its keys and journals in the bucket',
    holds: (values) => isCluster(values) && isSet(values, 'TAKEMARK_MIRROR_DIR'),
  },
  needed('TAKEMARK_KAFKA', 'TAKEMARK_BUS=kafka', (values) => values.TAKEMARK_BUS === 'kafka'),
  bothOrNone('TAKEMARK_KAFKA_USERNAME', 'TAKEMARK_KAFKA_PASSWORD'),
  {
    name: 'TAKEMARK_CONSUMERS',
    message: 'must be on with TAKEMARK_BUS=embedded: no other process can read the events',
    holds: (values) =>
      isCluster(values) && values.TAKEMARK_BUS === 'embedded' && values.TAKEMARK_CONSUMERS === 'off',
  },
  bothOrNone('TAKEMARK_CASSANDRA_USERNAME', 'TAKEMARK_CASSANDRA_PASSWORD'),
  {
    name: 'TAKEMARK_OPERATOR_PORT',
    message: 'must differ from TAKEMARK_PORT',
    holds: ({ TAKEMARK_PORT: port, TAKEMARK_OPERATOR_PORT: operatorPort }) =>
      port !== 0 && port === operatorPort,
  },
];
