#!/usr/bin/env node
import { readClientConfig } from './client-config.js';
import { openSealer } from './open-sealer.js';
import { run } from './program.js';
import { Terminal } from './terminal.js';

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  // Once: a second one ends the process at once, whatever it is doing.
  process.once(name, () => interruption.abort(new Error(name)));
}
// `takemark ... | head` closes the pipe early, which is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 3));

// The code is set, not forced: what is still in a pipe gets written.
process.exitCode = await run(process.argv.slice(2), {
  terminal: new Terminal(process.stdout, process.stderr),
  config: readClientConfig(process.env),
  signal: interruption.signal,
  openSealer,
});
