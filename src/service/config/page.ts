import { SETTINGS_BY_PART } from './settings.js';

const INTRODUCTION = `# Configuration

This page lists every setting. Each setting is an environment variable. Without any variable, the service runs on one
machine with all of its data under \`./takemark-data\`. If a value is invalid, the service does not start and the error
names the variable.

The page is generated from the table in \`src/service/config/\`, which is the only code that reads the environment
(\`npm run build:configuration\`).
`;

/** Returns the Markdown of docs/configuration.md. */
export function configurationPage(): string {
  const parts = Object.entries(SETTINGS_BY_PART).map(([title, settings]) => {
    const rows = Object.entries(settings).map(
      ([name, { schema, meaning, otherwise }]) =>
        `| \`${name}\` | ${otherwise ?? defaultWords(schema.parse(undefined))} | ${meaning === '' ? '' : `${meaning} `}|`,
    );
    return `\n## ${title}\n\n| variable | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return INTRODUCTION + parts.join('');
}

function defaultWords(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? `\`${value}\`` : 'none';
}
