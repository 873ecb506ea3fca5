/** Variables with the prefix that are not settings of the service. */
export interface UnknownSettings {
  /** Variables that no part of the project reads, each with the setting of the most similar name. */
  readonly misspelt: readonly { readonly name: string; readonly nearest: string }[];
  /** Variables that Kubernetes sets for a Service whose name begins with `takemark`. */
  readonly serviceLinks: readonly string[];
}

/** The variables that only tests, tools and the laboratory read. A service may inherit them from their shell. */
const OF_TOOLS: ReadonlySet<string> = new Set([
  'TAKEMARK_C2PA_PYTHON',
  'TAKEMARK_CENTRES_CASSANDRA',
  'TAKEMARK_CLIENTS_CACHE',
  'TAKEMARK_CLUSTER_NETWORK',
  'TAKEMARK_CORPUS',
  'TAKEMARK_EXHAUSTIVE',
  'TAKEMARK_ISSUE_KILLS',
  'TAKEMARK_KEPT_ROWS_KILLS',
  'TAKEMARK_KILLS',
  'TAKEMARK_LAB',
  'TAKEMARK_REQUESTS',
  'TAKEMARK_SECURE_CA',
  'TAKEMARK_SECURE_CASSANDRA',
  'TAKEMARK_SECURE_KAFKA',
  'TAKEMARK_SECURE_PASSWORD',
  'TAKEMARK_SECURE_USER',
  'TAKEMARK_SEED',
  'TAKEMARK_SERVICES_BROKERS',
  'TAKEMARK_SERVICES_DIR',
  'TAKEMARK_SERVICES_FAKETIME',
  'TAKEMARK_SERVICES_JARS',
  'TAKEMARK_SERVICES_NAMESPACES',
  'TAKEMARK_SERVICES_NETWORK',
  'TAKEMARK_SERVICES_PAXOS',
  'TAKEMARK_TEST_SEED',
  'TAKEMARK_VECTORS',
]);

/**
 * Returns whether Kubernetes set a variable for a Service (the variables of "Accessing the Service" in its
 * documentation): `..._SERVICE_HOST`, `..._SERVICE_PORT`, `..._PORT` and `..._PORT_8080_TCP`.
 */
export function isServiceLink(name: string, value: string): boolean {
  if (/_SERVICE_HOST$/.test(name) || /_SERVICE_PORT(?:_[A-Z0-9_]+)?$/.test(name)) return true;
  if (/_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name)) return true;
  return name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value);
}

/** Sorts the variables that are no settings into those of Kubernetes and those that are misspelt. */
export function unknownSettings(
  given: Readonly<Record<string, string | undefined>>,
  settings: readonly string[],
): UnknownSettings {
  const known = new Set(settings);
  const others = Object.entries(given).filter(([name]) => !known.has(name) && !OF_TOOLS.has(name));
  const isLink = ([name, value = '']: readonly [string, string | undefined]): boolean =>
    isServiceLink(name, value);
  return {
    misspelt: others
      .filter((entry) => !isLink(entry))
      .map(([name]) => ({ name, nearest: nearestOf(name, settings) })),
    serviceLinks: others.filter(isLink).map(([name]) => name),
  };
}

function nearestOf(name: string, settings: readonly string[]): string {
  const byDistance = settings.map((setting) => ({ setting, distance: editDistance(name, setting) }));
  return byDistance.reduce((best, next) => (next.distance < best.distance ? next : best)).setting;
}

/** Returns how many letters must be inserted, deleted or replaced to get from one word to another. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
