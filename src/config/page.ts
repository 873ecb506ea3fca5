import { SETTINGS_BY_PART } from './settings.js';

const INTRODUCTION = `# Configuration

Every setting is an environment variable. \`src/config/\` is the one place that reads them, and this page is written from its table
(\`npm run build:configuration\`). A start with a value that is not understood is refused, and the variable is named. Without any,
the service runs on one machine with everything under \`./takemark-data\`.
`;

/** Markdown of docs/configuration.md. */
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
