import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { argv, exit, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import type { Order, Played } from './player.js';
import { FAULTS, type Fault } from './weather.js';

/** The number of seeds that a player gets at once. */
const SEEDS_AT_ONCE = 4;
/** The average number of answered calls that a history needs. With fewer the histories show nothing. */
const ANSWERED = 20;
/** The number of failing seeds that the last line names. */
const NAMED = 50;

const { values } = parseArgs({
  args: argv.slice(2),
  options: {
    histories: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    faults: { type: 'string', default: FAULTS.join(',') },
    players: { type: 'string', default: String(availableParallelism()) },
    verbose: { type: 'boolean', default: false },
  },
});
/** The most histories that are played. With `--minutes`, all that begin within that time are played. */
const most = values.minutes === undefined ? Number(values.histories) : Infinity;
const lasts = values.minutes === undefined ? Infinity : Number(values.minutes) * 60_000;
const first = Number(values.seed);
const faults = values.faults.split(',').map((name): Fault => {
  const fault = FAULTS.find((one) => one === name);
  if (fault === undefined) throw new Error(`no fault is called ${name}; there are ${FAULTS.join(', ')}`);
  return fault;
});

const began = performance.now();
const failing: number[] = [];
let next = first;
let played = 0;
let answered = 0;
let violations = 0;

function seedsToGive(): number {
  return performance.now() - began < lasts ? Math.min(SEEDS_AT_ONCE, first + most - next) : 0;
}

/** Gives seeds to a process until none are left. */
function play(): Promise<void> {
  return new Promise((resolve, reject) => {
    // Histories allocate many short-lived objects. A larger young generation collects them once.
    const player = fork(new URL('player.js', import.meta.url), [], {
      execArgv: ['--max-semi-space-size=64'],
      serialization: 'advanced',
    });
    let waiting = 0;
    const give = (): void => {
      const seeds = Array.from({ length: seedsToGive() }, (_, i) => next + i);
      next += seeds.length;
      waiting = seeds.length;
      if (waiting === 0) player.disconnect();
      else player.send({ seeds, faults } satisfies Order);
    };
    player.on('message', (history: Played) => {
      played += 1;
      answered += history.answered;
      if (history.violations > 0) {
        violations += history.violations;
        failing.push(history.seed);
      }
      if (values.verbose || history.violations > 0) stdout.write(`${history.lines.join('\n')}\n\n`);
      waiting -= 1;
      if (waiting === 0) give();
    });
    player.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a player ended with ${code}`))));
    give();
  });
}

await Promise.all(Array.from({ length: Math.min(Number(values.players), most) }, play));
const count = next - first;
const seconds = (performance.now() - began) / 1000;
failing.sort((a, b) => a - b);
const named = failing.slice(0, NAMED).join(' ');
const more = failing.length > NAMED ? ` and ${failing.length - NAMED} more` : '';
const hasPlayed = count > 0 && played === count && answered >= ANSWERED * count;
stdout.write(
  `${answered} calls answered${hasPlayed ? '' : `, where ${ANSWERED} in each of ${count} histories are right`}, ${(played / seconds).toFixed(1)} histories a second\n`,
);
stdout.write(
  `${played} histories, ${violations} violations${failing.length === 0 ? '' : `, seeds ${named}${more}`}\n`,
);
exit(violations === 0 && hasPlayed ? 0 : 1);
