import t from 'tap';
import { serviceBanner, startService } from '../../src/service/compose/service.js';
import { readConfig } from '../../src/service/config/config.js';
import { runtimeWarning, runtimeWords } from '../../src/service/domain/runtime-support.js';
import { TestClock } from '../fixtures/service.js';

const at = (time: string): number => Date.parse(time);

void t.test('a Node gets fixes until the end of its last day', async (t) => {
  for (const [version, lastDay, after] of [
    ['v20.20.2', '2026-04-30T23:59:59Z', '2026-05-01T00:00:00Z'],
    ['v22.23.3', '2027-04-30T23:59:59Z', '2027-05-01T00:00:00Z'],
    ['v24.9.0', '2028-04-30T23:59:59Z', '2028-05-01T00:00:00Z'],
    ['v26.10.0', '2029-04-30T23:59:59Z', '2029-05-01T00:00:00Z'],
  ] as const) {
    t.equal(runtimeWarning(version, at(lastDay)), undefined, version);
    t.strictSame(runtimeWarning(version, at(after)), {
      node: version,
      reason: 'no_more_fixes',
      lastDay: lastDay.slice(0, 10),
    });
  }
  t.strictSame(
    runtimeWarning('v18.20.8', at('2026-01-01')),
    { node: 'v18.20.8', reason: 'no_more_fixes' },
    'older than the table',
  );
  t.strictSame(runtimeWarning('v19.0.0', at('2026-01-01')), { node: 'v19.0.0', reason: 'no_more_fixes' });
  t.strictSame(runtimeWarning('v25.1.0', at('2026-01-01')), { node: 'v25.1.0', reason: 'not_long_term' });
  t.equal(runtimeWarning('v28.0.0', at('2032-01-01')), undefined, 'newer than the table');
  t.match(
    runtimeWords({ node: 'v20.20.2', reason: 'no_more_fixes', lastDay: '2026-04-30' }),
    /v20\.20\.2 gets no more fixes since 2026-04-30/,
  );
  t.match(runtimeWords({ node: 'v25.1.0', reason: 'not_long_term' }), /not a long-term release/);
});

void t.test('a service says it in its log and in its banner', async (t) => {
  const lines: string[] = [];
  const start = async (clock: TestClock) => {
    const config = readConfig({
      TAKEMARK_PORT: '0',
      TAKEMARK_OPERATOR_PORT: '0',
      TAKEMARK_HOST: '127.0.0.1',
      TAKEMARK_DATA_DIR: t.testdir(),
    });
    const service = await startService(config, {
      version: '0.0.0-test',
      clock,
      logDestination: { write: (line) => void lines.push(line) },
    });
    await service.stop();
    const onIPv6 = { ...service, operator: { host: '::1', port: 81 } };
    t.match(
      serviceBanner(onIPv6, config, { version: '0.0.0-test' }),
      'http://[::1]:81,',
      'an address of IPv6 has brackets',
    );
    return serviceBanner(service, config, { version: '0.0.0-test' });
  };
  const clock = new TestClock();
  // Beyond every line of the table; a Node that is newer than that has nothing said against it.
  clock.advance((at('2030-01-01') - Date.now()) / 1000);
  const words = await start(clock);
  const noted = lines
    .map((line) => JSON.parse(line) as { event: string; reason?: string; level: number })
    .find(({ event }) => event === 'runtime_outdated');
  const known = runtimeWarning(process.version, clock.now());
  t.equal(noted?.reason, known?.reason);
  if (noted !== undefined) t.equal(noted.level, 40, 'the line is a warning');
  t.equal(words.includes('warning'), known !== undefined);
});
