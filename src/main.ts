import { readFileSync, writeSync } from 'node:fs';
import { crashLine, serviceWords, startService } from './compose.js';
import { ConfigError, readConfig } from './config.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// Rejections that nobody handles come here too. What was acknowledged is on disk, so there is nothing to
// save.
process.on('uncaughtException', (error: unknown) => {
  writeSync(2, crashLine(error));
  process.exit(1);
});

try {
  const config = readConfig();
  const service = await startService(config, { version });
  // For the person who starts it; the log on standard output is for machines.
  process.stderr.write(`${serviceWords(service, config, version)}\n`);
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
