import { readBuild } from './compose/build.js';
import { changeLevelOnSignal, exitOnCrash } from './compose/process.js';
import { serviceBanner, startService } from './compose/service.js';
import { ConfigError, readConfig } from './config/config.js';

const build = readBuild();

const HELP = `Runs the Takemark service in the foreground. It takes no arguments: every setting is an environment
variable (docs/configuration.md). "takemark config" prints the settings, "takemark --help" the commands.
`;

// A write that fails, to a full disk for example, does not end the service.
process.stderr.on('error', () => undefined);

const [argument] = process.argv.slice(2);
if (argument === '--help' || argument === '-h') {
  process.stdout.write(HELP);
} else if (argument === '--version' || argument === '-V') {
  process.stdout.write(`${build.version}\n`);
} else if (argument !== undefined) {
  process.stderr.write(`The service takes no arguments. It was given: ${argument}\n${HELP}`);
  process.exitCode = 2;
} else {
  await run();
}

async function run(): Promise<void> {
  try {
    const config = readConfig();
    exitOnCrash({ version: build.version, format: config.logFormat });
    const runs = changeLevelOnSignal();
    const service = await startService(config, build);
    runs(service);
    // For the person who starts it; the log on standard output is for machines.
    process.stderr.write(`${serviceBanner(service, config, build)}\n`);
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
}
