import { once } from 'node:events';
import { type Context, defineCommand, EXIT, type RunningProcess } from '../command.js';

export const serve = defineCommand({
  name: 'serve',
  summary: 'Run the service in the foreground, as npm start does',
  details: [
    'Settings are environment variables; see the README. SIGTERM and SIGINT stop it, and let requests in',
    'flight finish.',
  ],
  operands: [],
  options: {},
  run: (_operands, _options, context) => runUntilStopped(context, () => context.cluster.serve()),
});

export const consumers = defineCommand({
  name: 'consumers',
  summary: "Run a cluster's consumers of events in the foreground, beside any number of others",
  details: [
    'Takes erasures, usage and retention from Kafka and writes to Cassandra. Metrics and probes answer on',
    'TAKEMARK_OPERATOR_PORT. SIGTERM and SIGINT stop it, and let the batch in hand finish.',
  ],
  operands: [],
  options: {},
  run: (_operands, _options, context) => runUntilStopped(context, () => context.cluster.consume()),
});

async function runUntilStopped(
  { terminal, signal }: Context,
  start: () => Promise<RunningProcess>,
): Promise<number> {
  const running = await start();
  terminal.note(running.banner);
  if (!signal.aborted) await once(signal, 'abort');
  await running.stop();
  return EXIT.good;
}
