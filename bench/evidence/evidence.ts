import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { figure, held, interleave, type Measure, type Run, ratio, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import { writeLongTrace } from './long-trace.js';
import type { Reader, ReadingProcess } from './reading-process.js';

const WARM_UP_EVENTS = 50_000;

export const evidence: Measure = { name: 'evidence', run: measureEvidence };

async function measureEvidence(run: Run): Promise<Section> {
  const { traceEvents, rounds } = run.scale;
  const [file, warmUp] = [join(run.dataDir, 'long.trace'), join(run.dataDir, 'short.trace')];
  run.progress(`evidence: a trace of ${traceEvents} events is written`);
  await writeLongTrace(file, traceEvents);
  await writeLongTrace(warmUp, WARM_UP_EVENTS);
  const { size } = await stat(file);
  const measured = async (reader: Reader) => {
    const child = new Child<ReadingProcess>(new URL('./reading-process.js', import.meta.url));
    try {
      const reading = await child.call('measure', { reader, file, warmUp });
      if (reading.events !== traceEvents) run.wrong(`evidence: ${reader} read ${reading.events} events`);
      return reading;
    } finally {
      await child.stop();
    }
  };
  const results = await interleave(run, 'evidence', rounds, [
    { name: 'plain', once: () => measured('plain') },
    { name: 'read', once: () => measured('read') },
    { name: 'replay', once: () => measured('replay') },
  ]);
  const rate = (name: string): readonly number[] =>
    results.get(name)!.map(({ events, seconds }) => events / seconds / 1000);
  const grown = (name: string): readonly number[] =>
    results.get(name)!.map(({ grownBytes }) => grownBytes / 1e6);
  return {
    id: 'evidence',
    title: 'Evidence',
    method: `A sealed trace of ${traceEvents.toLocaleString('en-US')} events of a simulated session, ${(size / 2 ** 20).toFixed(0)} MiB on the disk, read in a process of its own for each round, after a short one has warmed it up. Reading is both passes: chain, signatures, every event decoded strictly and its references checked; replay adds the counters, the arrangement, the facts and the report. The baseline decodes the same frames and events with the MessagePack library and checks nothing.`,
    figures: [
      figure('evidence.read.rate', 'trace read, thousand events a second', 'k/s', 'ours', rate('read')),
      figure('evidence.plain.rate', 'MessagePack decoded', 'k/s', 'baseline', rate('plain')),
      figure('evidence.read.memory', 'trace read, memory it grew by', 'MB', 'ours', grown('read')),
      figure(
        'evidence.plain.memory',
        'MessagePack decoded, memory it grew by',
        'MB',
        'baseline',
        grown('plain'),
      ),
      figure(
        'evidence.report.bytes',
        'report of the proof as JSON, without source detail',
        'kB',
        'ours',
        results.get('replay')!.map(({ reportBytes = 0 }) => reportBytes / 1000),
      ),
    ],
    comparisons: [
      ratio(
        'evidence.read/plain',
        'two passes with all checks, events a second',
        '@msgpack/msgpack, decoded once',
        'k/s',
        rate('read'),
        rate('plain'),
      ),
      ratio(
        'evidence.replay/plain',
        'read, replayed and reported, events a second',
        '@msgpack/msgpack, decoded once',
        'k/s',
        rate('replay'),
        rate('plain'),
      ),
      held('evidence.memory', 'memory that a replay grew by', 'a trace of any length', 'MB', grown('replay')),
    ],
    notes: [],
  };
}
