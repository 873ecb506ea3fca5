/** The lines of the log: which members they have, what is folded, and how the level changes. */
import t from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import type { RequestRecord } from '../../src/service/ports/request-log.js';
import { Folds } from '../../src/service/telemetry/folds.js';
import { crashLine, nextLevel } from '../../src/service/telemetry/log.js';
import { createTelemetry, type TelemetryParts } from '../../src/service/telemetry/telemetry.js';

const RECORD: RequestRecord = {
  listener: 'partner',
  method: 'POST',
  route: '/v1/verify',
  status: 200,
  requestId: 'rq_1',
  keyId: 'key_1',
  partnerId: 'ptr_1',
  address: '192.0.2.7',
  durationMs: 1.5,
  bytesIn: 1,
  bytesOut: 2,
};
const CALL = { requestId: 'rq_2', route: '/v1/verify', partnerId: 'ptr_1' } as const;
const DISK_FULL = new DomainError('unavailable', 'The registry cannot be reached.', {
  reason: 'store_unavailable',
  dependency: 'disk',
  cause: Object.assign(new Error('full'), { code: 'ENOSPC' }),
});

function open(parts: Partial<TelemetryParts> = {}) {
  const lines: string[] = [];
  const telemetry = createTelemetry({
    level: 'info',
    eventsWaiting: () => 0,
    lag: () => new Map(),
    build: { version: '1.2.3', commit: 'abc' },
    destination: { write: (line) => void lines.push(line) },
    ...parts,
  });
  return {
    telemetry,
    read: () => lines.splice(0).map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

t.test('every line names service, version, instance and message', async (t) => {
  const { telemetry, read } = open();
  telemetry.note('started');
  telemetry.warn('clock_wrong');
  telemetry.requestLog.request(RECORD);
  telemetry.observer.fault('store', new Error('x'));
  telemetry.observer.events('usage', 'dead', 1);
  const lines = [...read(), JSON.parse(crashLine(new Error('x'), { version: '1.2.3' }))];
  const messages = ['started', 'clock_wrong', 'request', 'fault', 'dead_letter', 'crash'];
  t.strictSame(
    lines.map(({ msg }) => msg),
    messages,
  );
  for (const line of lines) {
    t.match(line, { service: 'takemark', version: '1.2.3', instance: /^.+:\d+$/ });
    t.equal(line['event'], line['msg']);
  }
});

t.test('level and time are words when the format is words', async (t) => {
  const { telemetry, read } = open({ logFormat: 'words' });
  telemetry.note('started');
  telemetry.observer.fault('store', new Error('x'));
  const crash = JSON.parse(crashLine(new Error('x'), { format: 'words' })) as Record<string, unknown>;
  const lines = [...read(), crash];
  t.strictSame(
    lines.map(({ level }) => level),
    ['info', 'error', 'fatal'],
  );
  for (const { time } of lines) t.equal(new Date(time as string).toISOString(), time);
  const numbers = open();
  numbers.telemetry.note('started');
  const [line] = numbers.read();
  t.equal(line!['level'], 30);
  t.type(line!['time'], 'number');
});

t.test('a fault line names the call and the dependency', async (t) => {
  const { telemetry, read } = open();
  telemetry.observer.fault('/v1/verify', DISK_FULL, CALL);
  telemetry.observer.fault('collect', new Error('x', { cause: DISK_FULL }));
  const [ofCall, ofJob] = read();
  t.match(ofCall, { where: '/v1/verify', dependency: 'disk', ...CALL });
  t.match(ofJob, { where: 'collect', dependency: 'disk' });
  t.notOk(['requestId', 'route', 'count'].some((name) => name in ofJob!));
  const { text } = await telemetry.metrics();
  t.match(text, 'takemark_dependency_errors_total{dependency="disk"} 2\n');
  t.match(text, 'takemark_dependency_errors_total{dependency="kafka"} 0\n');
  t.match(text, 'takemark_faults_total{where="producer"} 0\n');
});

t.test('a request line names partner, code and reason, and the address only by setting', async (t) => {
  const refused: RequestRecord = { ...RECORD, status: 404, code: 'not_found', reason: 'unknown_route' };
  const { telemetry, read } = open();
  telemetry.requestLog.request(refused);
  const [line] = read();
  t.match(line, { partnerId: 'ptr_1', code: 'not_found', reason: 'unknown_route' });
  t.notOk('address' in line!);
  const addressed = open({ logsAddresses: true });
  addressed.telemetry.requestLog.request(RECORD);
  const [other] = addressed.read();
  t.match(other, { address: '192.0.2.7' });
  t.notOk(['code', 'reason'].some((name) => name in other!));
});

t.test('a flood is one line of each kind, with a count', async (t) => {
  const { telemetry, read } = open();
  const failed: RequestRecord = { ...RECORD, status: 503, code: 'unavailable', reason: 'store_unavailable' };
  for (let i = 1; i <= 1000; i += 1) {
    telemetry.observer.fault('/v1/verify', DISK_FULL, { ...CALL, requestId: `rq_${i}` });
    telemetry.requestLog.request({ ...failed, requestId: `rq_${i}` });
    telemetry.observer.events('usage', 'dead', 2);
  }
  telemetry.requestLog.request({ ...failed, reason: 'outbox_full' });
  t.match(read(), [
    { event: 'fault', requestId: 'rq_1' },
    { event: 'request', requestId: 'rq_1' },
    { event: 'dead_letter', count: 2 },
    { event: 'request', reason: 'outbox_full' },
  ]);
  telemetry.flush();
  const lines = read();
  t.equal(lines.length, 3);
  t.match(lines, [
    { event: 'fault', requestId: 'rq_1000', count: 999 },
    { event: 'request', requestId: 'rq_1000', count: 999 },
    { event: 'dead_letter', count: 1998 },
  ]);
  for (let i = 0; i < 1000; i += 1) telemetry.requestLog.request({ ...RECORD, status: 429 });
  t.equal(read().length, 1000, 'only failures of the service are folded');
  const { text } = await telemetry.metrics();
  t.match(text, 'takemark_faults_total{where="/v1/verify"} 1000\n', 'the metrics count each of them');
  const whole = open({ level: 'debug' });
  for (let i = 0; i < 10; i += 1) whole.telemetry.observer.fault('store', DISK_FULL);
  t.equal(whole.read().length, 10, 'at the level debug nothing is folded');
});

t.test('folds write a line per second while events arrive, and bound their kinds', async (t) => {
  const seconds: (() => void)[] = [];
  const folds = new Folds((work) => void seconds.push(work));
  const written: [string, number][] = [];
  const add = (kind: string) => folds.add(kind, (count) => void written.push([kind, count]));
  const pass = () => {
    for (const work of seconds.splice(0)) work();
  };
  add('a');
  add('a');
  add('b');
  t.strictSame(written.splice(0), [
    ['a', 1],
    ['b', 1],
  ]);
  pass();
  t.strictSame(written.splice(0), [['a', 1]], 'the second event of the first second');
  add('a');
  add('a');
  t.strictSame(written, [], 'the next second has begun');
  pass();
  t.strictSame(written.splice(0), [['a', 2]]);
  pass();
  add('a');
  t.strictSame(written.splice(0), [['a', 1]], 'after a quiet second the first event is written at once');
  for (let i = 0; i < 2000; i += 1) add(`kind ${i}`);
  t.ok(seconds.length <= 501, `${seconds.length} kinds are kept`);
});

t.test('the level of a running process changes in turn', async (t) => {
  const after = (configured: Parameters<typeof nextLevel>[0], steps: number) => {
    const levels = [configured];
    for (let i = 0; i < steps; i += 1) levels.push(nextLevel(configured, levels.at(-1)!));
    return levels;
  };
  t.strictSame(after('info', 3), ['info', 'debug', 'warn', 'info']);
  t.strictSame(after('error', 4), ['error', 'debug', 'info', 'warn', 'error']);
  const { telemetry, read } = open({ level: 'error' });
  telemetry.requestLog.request(RECORD);
  t.strictSame(read(), []);
  telemetry.changeLogLevel();
  telemetry.requestLog.request(RECORD);
  t.match(read(), [{ event: 'log_level', from: 'error', to: 'debug' }, { event: 'request' }]);
  telemetry.changeLogLevel();
  telemetry.changeLogLevel();
  telemetry.changeLogLevel();
  t.match(
    read(),
    [
      { from: 'debug', to: 'info' },
      { from: 'info', to: 'warn' },
      { from: 'warn', to: 'error' },
    ],
    'the log says so at the louder of both levels',
  );
  telemetry.requestLog.request(RECORD);
  t.strictSame(read(), []);
});
