/** What the command line needs to know of the environment. */
export interface ClientConfig {
  /** Partner listener. */
  readonly url: string;
  /** Operator listener. */
  readonly operatorUrl: string;
  readonly apiKey: string | undefined;
  readonly operatorToken: string | undefined;
  /** Of a service on this machine: where its operator token lies. */
  readonly dataDirectory: string;
}

/** @param env an empty value counts as none */
export function readClientConfig(env: Readonly<Record<string, string | undefined>>): ClientConfig {
  return {
    url: env['TAKEMARK_URL'] || 'http://127.0.0.1:8080',
    operatorUrl: env['TAKEMARK_OPERATOR_URL'] || 'http://127.0.0.1:8081',
    apiKey: env['TAKEMARK_API_KEY'] || undefined,
    operatorToken: env['TAKEMARK_OPERATOR_TOKEN'] || undefined,
    dataDirectory: env['TAKEMARK_DATA_DIR'] || './takemark-data',
  };
}
