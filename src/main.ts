import { readFileSync } from 'node:fs';
import { exitOnCrash } from './compose/process.js';
import { serviceBanner, startService } from './compose/service.js';
import { ConfigError, readConfig } from './config/config.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

exitOnCrash();
// Words that cannot be written, to a full disk for example, end no service.
process.stderr.on('error', () => undefined);

try {
  const config = readConfig();
  const service = await startService(config, { version });
  // For the person who starts it; the log on standard output is for machines.
  process.stderr.write(`${serviceBanner(service, config, version)}\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // Once: a second signal ends the process at once.
    process.once(signal, () => {
      service.stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
} catch (error) {
  process.stderr.write(
    `${error instanceof ConfigError ? 'The configuration cannot be used:\n' : 'The service could not start: '}${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exit(1);
}
