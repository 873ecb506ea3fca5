/** What the command line needs to know of the environment. */
export interface ClientConfig {
  /** Partner listener. */
  readonly url: string;
  /** Operator listener. */
  readonly operatorUrl: string;
  readonly apiKey?: string;
  readonly operatorToken?: string;
  /** Data directory of a service on this machine, where its operator token lies. */
  readonly dataDir: string;
}

/** @param env an empty value counts as none */
export function readClientConfig(env: Readonly<Record<string, string | undefined>>): ClientConfig {
  const apiKey = env['TAKEMARK_API_KEY'] || undefined;
  const operatorToken = env['TAKEMARK_OPERATOR_TOKEN'] || undefined;
  return {
    url: env['TAKEMARK_URL'] || 'http://127.0.0.1:8080',
    operatorUrl: env['TAKEMARK_OPERATOR_URL'] || 'http://127.0.0.1:8081',
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(operatorToken === undefined ? {} : { operatorToken }),
    dataDir: env['TAKEMARK_DATA_DIR'] || 'takemark-data',
  };
}
