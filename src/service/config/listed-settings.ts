import { FILE_SETTINGS, SETTINGS_BY_PART, type Values, variables } from './settings.js';

/** A setting as `takemark config` prints it. */
export interface ListedSetting {
  readonly name: string;
  /** The text of the value. `(set)` if the value is secret, and absent if the setting has no value. */
  readonly value?: string;
  readonly source: 'environment' | 'default';
}

/** The settings whose value is a secret. */
const SECRET = /_(?:TOKENS?|PIN|SECRETS|PASSWORD|ACCESS_KEY|SECRET_KEY|API_KEY)$/;
/** The label of a PKCS#11 token, which is not a secret. */
const NOT_SECRET: ReadonlySet<string> = new Set(['TAKEMARK_SIGNING_PKCS11_TOKEN']);

/** Returns every setting in the order of the configuration page, with the text of its default if it has one. */
export function listSettings(
  environment: Readonly<Record<string, string | undefined>>,
): readonly ListedSetting[] {
  return Object.values(SETTINGS_BY_PART).flatMap((settings) =>
    Object.entries(settings).map(([name, { otherwise }]): ListedSetting => {
      const given = environment[name];
      if (given !== undefined && given !== '')
        return { name, value: isSecret(name) ? '(set)' : given, source: 'environment' };
      if (environment[`${name}_FILE`] && Object.values<string>(FILE_SETTINGS).includes(name))
        return { name, value: '(set)', source: 'environment' };
      const value = otherwise?.replaceAll('`', '') ?? defaultText(name as keyof Values);
      return { name, ...(value === undefined ? {} : { value }), source: 'default' };
    }),
  );
}

function isSecret(name: string): boolean {
  return SECRET.test(name) && !NOT_SECRET.has(name);
}

function defaultText(name: keyof Values): string | undefined {
  const value: unknown = variables[name].parse(undefined);
  if (value === undefined) return undefined;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value);
}
