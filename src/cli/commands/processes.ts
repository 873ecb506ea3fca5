import { once } from 'node:events';
import { type Context, defineCommand, EXIT } from '../command.js';

const serve = defineCommand({
  name: 'serve',
  summary: 'Run the service in the foreground, as npm start does',
  details: [
    'Settings are environment variables; see the README. On SIGTERM or SIGINT the service stops after the',
    'requests in flight have finished.',
  ],
  run: (_operands, _options, context) => runUntilStopped(context, () => context.cluster.serve()),
});

const consumers = defineCommand({
  name: 'consumers',
  summary: "Run a cluster's event consumers in the foreground; any number can run in parallel",
  details: [
    'Reads erasure, usage and retention events from Kafka and writes to Cassandra. Metrics and probes are',
    'served on TAKEMARK_OPERATOR_PORT. On SIGTERM or SIGINT it stops after the current batch.',
  ],
  run: (_operands, _options, context) => runUntilStopped(context, () => context.cluster.consume()),
});

async function runUntilStopped(
  { terminal, signal }: Context,
  start: () => ReturnType<Context['cluster']['serve']>,
): Promise<number> {
  const running = await start();
  terminal.note(running.banner);
  if (!signal.aborted) await once(signal, 'abort');
  await running.stop();
  return EXIT.good;
}

export const PROCESS_COMMANDS = [serve, consumers];
