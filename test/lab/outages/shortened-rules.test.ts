import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ROOT } from '../../docs/pages.js';
import { shortenedRules } from './shortened-rules.js';

t.test(
  'every duration of the alerts is shorter in the rules of the laboratory, and nothing else',
  async (t) => {
    const rules = await readFile(join(ROOT, 'deploy/prometheus/alerts.yml'), 'utf8');
    const short = shortenedRules(rules, 30);
    const durations = (text: string) =>
      [...text.matchAll(/(?:for: |\[)(\d+)([smh])/g)].map(
        ([, count, unit]) => Number(count) * { s: 1, m: 60, h: 3600 }[unit as 's' | 'm' | 'h'],
      );
    const [before, after] = [durations(rules), durations(short)];
    t.ok(before.length > 20);
    t.strictSame(
      after,
      before.map((seconds) => Math.max(2, seconds / 30)),
    );
    const withoutTimes = (text: string) =>
      text.replaceAll(/(for: |\[)\d+[smh]/g, '$1').replaceAll(/(_oldest_seconds\) > )\d+/g, '$1');
    t.equal(withoutTimes(short), withoutTimes(rules));
    t.match(short, /_oldest_seconds\) > 10\n/);
  },
);
