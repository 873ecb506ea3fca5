import type { Values } from './settings.js';

type Name = keyof Values;

/** Settings that cannot be used together, or not one without the other. */
interface Conflict {
  /** Variable that the message begins with. */
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
    message: `and ${other}: both or none`,
    holds: (values) => isSet(values, name) !== isSet(values, other),
  };
}

function needed(name: Name, where: string, holds: (values: Values) => boolean): Conflict {
  return {
    name,
    message: `is needed with ${where}`,
    holds: (values) => holds(values) && !isSet(values, name),
  };
}

/** Some of the files of a signing identity are named, and not all that are needed. */
function isHalfSigning(values: Values): boolean {
  const names: readonly Name[] = [
    'TAKEMARK_SIGNING_CERT',
    'TAKEMARK_SIGNING_AUTHORITY',
    ...(isInToken(values) ? [] : (['TAKEMARK_SIGNING_KEY'] as const)),
  ];
  const set = names.filter((name) => isSet(values, name));
  return set.length > 0 && set.length < names.length;
}

/** Checked in this order: every conflict that holds is named at start. */
export const CONFLICTS: readonly Conflict[] = [
  {
    name: 'TAKEMARK_SIGNING_CERT',
    message: 'and TAKEMARK_SIGNING_AUTHORITY: both or none',
    holds: (values) => isInToken(values) && isHalfSigning(values),
  },
  {
    name: 'TAKEMARK_SIGNING_CERT',
    message: 'needs TAKEMARK_SIGNING_KEY and TAKEMARK_SIGNING_AUTHORITY too: all three or none',
    holds: (values) => !isInToken(values) && isHalfSigning(values),
  },
  {
    name: 'TAKEMARK_SIGNING_KEY',
    message: 'or TAKEMARK_SIGNING_PKCS11: the key is in a file or in a token',
    holds: (values) => isInToken(values) && isSet(values, 'TAKEMARK_SIGNING_KEY'),
  },
  needed('TAKEMARK_SIGNING_PKCS11_TOKEN', 'TAKEMARK_SIGNING_PKCS11', isInToken),
  {
    name: 'TAKEMARK_SIGNING_PKCS11_PIN',
    message: 'or TAKEMARK_SIGNING_PKCS11_PIN_FILE is needed with TAKEMARK_SIGNING_PKCS11, one of them',
    holds: (values) =>
      isInToken(values) &&
      isSet(values, 'TAKEMARK_SIGNING_PKCS11_PIN') === isSet(values, 'TAKEMARK_SIGNING_PKCS11_PIN_FILE'),
  },
  bothOrNone('TAKEMARK_TLS_CERT', 'TAKEMARK_TLS_KEY'),
  needed('TAKEMARK_S3_BUCKET', 'TAKEMARK_ASSETS=s3', (values) => values.TAKEMARK_ASSETS === 's3'),
  bothOrNone('TAKEMARK_S3_ACCESS_KEY', 'TAKEMARK_S3_SECRET_KEY'),
  needed('TAKEMARK_CASSANDRA', 'TAKEMARK_STORE=cassandra', isCluster),
  needed('TAKEMARK_CASSANDRA_DC', 'TAKEMARK_STORE=cassandra', isCluster),
  // No process of a cluster makes its own identity: rule 16.1.
  needed(
    'TAKEMARK_SECRETS_FILE',
    'TAKEMARK_STORE=cassandra',
    (values) => isCluster(values) && !isSet(values, 'TAKEMARK_SECRETS'),
  ),
  {
    name: 'TAKEMARK_SECRETS',
    message: 'or TAKEMARK_SECRETS_FILE: not both',
    holds: (values) => isSet(values, 'TAKEMARK_SECRETS_FILE') && isSet(values, 'TAKEMARK_SECRETS'),
  },
  {
    name: 'TAKEMARK_ASSETS',
    message:
      'must be s3 with TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka: a process could not remove what lies in the directory of another',
    holds: (values) =>
      isCluster(values) && values.TAKEMARK_BUS === 'kafka' && values.TAKEMARK_ASSETS !== 's3',
  },
  {
    name: 'TAKEMARK_CONSUMERS',
    message: 'must be on with TAKEMARK_STORE=embedded: no other process has the store',
    holds: (values) => !isCluster(values) && values.TAKEMARK_CONSUMERS === 'off',
  },
  needed('TAKEMARK_KAFKA', 'TAKEMARK_BUS=kafka', (values) => values.TAKEMARK_BUS === 'kafka'),
  bothOrNone('TAKEMARK_KAFKA_USERNAME', 'TAKEMARK_KAFKA_PASSWORD'),
  {
    name: 'TAKEMARK_CONSUMERS',
    message: 'must be on with TAKEMARK_BUS=embedded: no other process could take the events',
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
