import { createHmac } from 'node:crypto';
import { appendFile, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { AUDIT_HEADS_FILE, createAuditHeads } from '../../src/service/adapters/journals/audit-heads.js';
import { openErasureJournal } from '../../src/service/adapters/journals/erasure-journal.js';
import { mirroredErasures, mirroredHeads } from '../../src/service/adapters/journals/mirrored-journals.js';
import type { ErasureJournal } from '../../src/service/ports/journals.js';
import type { Secrets } from '../../src/service/ports/secrets.js';
import { secretsOf } from '../operations/doubles.js';

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

async function openLogs(directory: string, secrets: Secrets, surplus?: number) {
  const heads = createAuditHeads({ directory, secrets, ...(surplus === undefined ? {} : { surplus }) });
  try {
    await heads.get('ptr_0');
    const journal = await openErasureJournal({ directory, secrets });
    return { heads, journal, close: async () => void (await Promise.all([heads.close(), journal.close()])) };
  } catch (error) {
    await heads.close();
    throw error;
  }
}

t.test('journals outlive a torn end, and open for no edited line and no other service', async (t) => {
  const directory = t.testdir();
  const secrets = secretsOf();
  const first = await openLogs(directory, secrets);
  const erasure = (n: number) => ({ proofId: `prf_${n}`, partnerId: 'ptr_1', erasedAt: 1000 + n });
  await Promise.all(Array.from({ length: 50 }, (_, n) => first.journal.record(erasure(n))));
  await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      first.heads.record({ partnerId: `ptr_${n % 2}`, sequence: n + 1, mac: 'ab'.repeat(32) }),
    ),
  );
  await first.heads.record({ partnerId: 'ptr_0', sequence: 3, mac: 'cd'.repeat(32) });
  await first.close();
  for (const file of ['erasures.log', AUDIT_HEADS_FILE])
    t.equal((await stat(join(directory, file))).mode & 0o777, 0o600);

  const path = join(directory, 'erasures.log');
  const whole = await readFile(path);
  const lastLine = whole.lastIndexOf(0x0a, whole.length - 2) + 1;
  for (const cut of [1, 2, 40, whole.length - lastLine - 1]) {
    await writeFile(path, whole.subarray(0, whole.length - cut));
    const torn = await openLogs(directory, secrets);
    const read = await all(torn.journal.read());
    t.equal(read.length, 49, `torn by ${cut}`);
    t.strictSame(read[48], erasure(48));
    await torn.journal.record(erasure(99));
    t.strictSame((await all(torn.journal.read())).at(-1), erasure(99), 'the next line replaces the torn one');
    await torn.close();
  }
  await writeFile(path, whole);
  const edited = Buffer.from(whole);
  edited[whole.indexOf('prf_7') + 4] = 0x38;
  await writeFile(path, edited);
  await t.rejects(openLogs(directory, secrets), { name: 'JournalOpenError' }, 'an edited line');
  await writeFile(path, whole);
  await t.rejects(openLogs(directory, secretsOf()), { name: 'JournalOpenError' }, 'another service');
  const kept = await openLogs(directory, secrets.replaced());
  t.equal((await all(kept.journal.read())).length, 50, 'a former secret still verifies');
  t.strictSame(
    await kept.heads.get('ptr_0'),
    { partnerId: 'ptr_0', sequence: 49, mac: 'ab'.repeat(32) },
    'a lower sequence is ignored',
  );
  t.equal(
    (await readFile(join(directory, AUDIT_HEADS_FILE), 'utf8')).split('\n').length,
    3,
    'one line a partner once it was opened',
  );
  t.equal(await kept.heads.get('ptr_9'), undefined);
  await kept.close();

  const small = await openLogs(directory, secrets, 10);
  for (let n = 100; n < 200; n += 1)
    await small.heads.record({ partnerId: 'ptr_0', sequence: n, mac: 'ef'.repeat(32) });
  t.ok(
    (await readFile(join(directory, AUDIT_HEADS_FILE), 'utf8')).split('\n').length < 16,
    'written anew when it has grown',
  );
  await small.close();
  const again = await openLogs(directory, secrets);
  t.match(await again.heads.get('ptr_0'), { sequence: 199 });
  t.match(await again.heads.get('ptr_1'), { sequence: 50 });
  await again.close();
  await truncate(join(directory, AUDIT_HEADS_FILE), 0);
  await appendFile(join(directory, AUDIT_HEADS_FILE), 'not a line\nnor this\n');
  await t.rejects(openLogs(directory, secrets), { name: 'JournalOpenError' });
});

t.test(
  'lines that were taken out, moved or repeated are found; a torn end is not held against it',
  async (t) => {
    const directory = t.testdir();
    const secrets = secretsOf();
    const path = join(directory, 'erasures.log');
    const erasure = (n: number) => ({ proofId: `prf_${n}`, partnerId: 'ptr_1', erasedAt: 1000 + n });
    const journal = await openErasureJournal({ directory, secrets });
    for (let n = 0; n < 5; n += 1) await journal.record(erasure(n));
    await journal.close();
    const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
    const [a, b, c, d, e] = lines as [string, string, string, string, string];
    const opens = async (...kept: readonly string[]) => {
      await writeFile(path, kept.map((each) => `${each}\n`).join(''));
      const opened = await openErasureJournal({ directory, secrets });
      const found = await all(opened.read());
      await opened.close();
      return found.map(({ proofId }) => Number(proofId.slice('prf_'.length)));
    };
    t.strictSame(await opens(...lines), [0, 1, 2, 3, 4]);
    const altered: Readonly<Record<string, readonly string[]>> = {
      'the first one taken out': [b, c, d, e],
      'one taken out': [a, b, d, e],
      'the last but one taken out': [a, b, c, e],
      'two exchanged': [a, c, b, d, e],
      'the last two exchanged': [a, b, c, e, d],
      'one repeated': [a, b, b, c, d, e],
      'the last one repeated': [a, b, c, d, e, e],
      'an earlier one after the last': [a, b, c, d, e, b],
    };
    for (const [what, kept] of Object.entries(altered)) {
      await t.rejects(
        opens(...kept),
        { name: 'JournalOpenError', message: /erasures\.log is broken at line/ },
        what,
      );
      t.equal(
        await readFile(path, 'utf8'),
        kept.map((each) => `${each}\n`).join(''),
        `${what}: the file stays as it is`,
      );
    }
    await writeFile(path, `${lines.join('\n')}\n${'\0'.repeat(50)}\n`);
    const torn = await openErasureJournal({ directory, secrets });
    await torn.record(erasure(5));
    await torn.close();
    const again = await openErasureJournal({ directory, secrets: secrets.replaced() });
    t.strictSame(
      (await all(again.read())).map(({ proofId }) => proofId),
      [0, 1, 2, 3, 4, 5].map((n) => `prf_${n}`),
    );
    await again.record(erasure(6));
    await again.close();
    const both = await openErasureJournal({ directory, secrets: secrets.replaced() }).catch(
      (error: unknown) => error,
    );
    t.match(both, { name: 'JournalOpenError' }, 'a line under a secret that is not known');
  },
);

t.test(
  'a journal of a former version is read and continued, and nothing of it can be taken out from then on',
  async (t) => {
    const directory = t.testdir();
    const secrets = secretsOf();
    const path = join(directory, 'erasures.log');
    const { id, key } = secrets.current('audit');
    const former = Array.from({ length: 4 }, (_, n) => {
      const text = JSON.stringify([`prf_${n}`, 'ptr_1', 1000 + n]);
      return `${createHmac('sha256', key).update(`takemark erasure journal ${text}`).digest('hex')} ${id} ${text}\n`;
    });
    await writeFile(path, former.join(''));
    const open = () => openErasureJournal({ directory, secrets });
    const names = async () => {
      const journal = await open();
      const found = (await all(journal.read())).map(({ proofId }) => proofId);
      await journal.close();
      return found;
    };
    const expected = ['prf_0', 'prf_1', 'prf_2', 'prf_3'];
    t.strictSame(await names(), expected);
    t.strictSame(await names(), expected, 'and again');
    const journal = await open();
    await journal.record({ proofId: 'prf_4', partnerId: 'ptr_1', erasedAt: 1004 });
    t.strictSame(
      (await all(journal.read())).map(({ proofId }) => proofId),
      [...expected, 'prf_4'],
    );
    await journal.close();
    const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
    t.equal(lines.length, 6, 'one line covers those of before');
    for (let out = 0; out < 5; out += 1) {
      await writeFile(
        path,
        lines
          .filter((_, i) => i !== out)
          .map((each) => `${each}\n`)
          .join(''),
      );
      await t.rejects(open(), { name: 'JournalOpenError' }, `without line ${out + 1}`);
    }
    await writeFile(path, [...lines, former[0]!.trimEnd()].map((each) => `${each}\n`).join(''));
    await t.rejects(open(), { name: 'JournalOpenError' }, 'a former line after those of today');
  },
);

t.test('a head that was put back is lower from then on', async (t) => {
  const directory = t.testdir();
  const secrets = secretsOf();
  const open = () => createAuditHeads({ directory, secrets });
  const head = (partnerId: string, sequence: number) => ({ partnerId, sequence, mac: 'ab'.repeat(32) });
  let heads = open();
  for (const partnerId of ['ptr_1', 'ptr_2', 'ptr_3']) await heads.record(head(partnerId, 9));
  await heads.acceptRestored('ptr_1', head('ptr_1', 4));
  await heads.acceptRestored('ptr_2', undefined);
  for (let opening = 0; opening < 3; opening += 1) {
    t.strictSame(
      (await heads.all()).toSorted((a, b) => (a.partnerId < b.partnerId ? -1 : 1)),
      [head('ptr_1', 4), head('ptr_3', 9)],
    );
    await heads.close();
    heads = open();
  }
  await heads.record(head('ptr_1', 5));
  await heads.record(head('ptr_2', 1));
  t.strictSame(
    [await heads.get('ptr_1'), await heads.get('ptr_2')],
    [head('ptr_1', 5), head('ptr_2', 1)],
    'and grows from there',
  );
  await heads.close();
});

t.test(
  'two journals of erasures: each gets what only the other one has, and a new entry is in both',
  async (t) => {
    const directory = t.testdir();
    const secrets = secretsOf();
    const open = () =>
      Promise.all(
        ['first', 'second'].map((name) => openErasureJournal({ directory: join(directory, name), secrets })),
      );
    const erasure = (n: number) => ({ proofId: `prf_${n}`, partnerId: 'ptr_1', erasedAt: 1000 + n });
    const ids = async (journal: ErasureJournal) =>
      (await all(journal.read())).map(({ erasedAt }) => erasedAt - 1000);
    let [first, second] = await open();
    for (const n of [1, 2]) await first!.record(erasure(n));
    let both = await mirroredErasures(first!, second!);
    await both.record(erasure(3));
    t.strictSame(await Promise.all([first!, second!].map(ids)), [
      [1, 2, 3],
      [1, 2, 3],
    ]);
    await both.close();

    // Each disk was used alone for some time.
    [first, second] = await open();
    await first!.record(erasure(4));
    for (const n of [5, 6]) await second!.record(erasure(n));
    both = await mirroredErasures(first!, second!);
    const expected = [
      [1, 2, 3, 4, 5, 6],
      [1, 2, 3, 5, 6, 4],
    ];
    t.strictSame(await Promise.all([first!, second!].map(ids)), expected);
    await both.close();
    [first, second] = await open();
    both = await mirroredErasures(first!, second!);
    t.strictSame(await Promise.all([first!, second!].map(ids)), expected, 'nothing is added twice');
    await both.close();
  },
);

t.test(
  'two records of audit heads: the higher head counts, and an accepted one counts in both',
  async (t) => {
    const directory = t.testdir();
    const secrets = secretsOf();
    const [first, second] = ['first', 'second'].map((name) =>
      createAuditHeads({ directory: join(directory, name), secrets }),
    );
    const head = (partnerId: string, sequence: number) => ({ partnerId, sequence, mac: 'ab'.repeat(32) });
    await first!.record(head('ptr_1', 3));
    await second!.record(head('ptr_1', 5));
    await second!.record(head('ptr_2', 1));
    const both = mirroredHeads(first!, second!);
    t.strictSame(await both.all(), [head('ptr_1', 5), head('ptr_2', 1)]);
    t.strictSame(await both.get('ptr_1'), head('ptr_1', 5));
    await both.record(head('ptr_1', 6));
    await both.acceptRestored('ptr_2', undefined);
    await both.acceptRestored('ptr_1', head('ptr_1', 2));
    t.strictSame(await Promise.all([first!.all(), second!.all(), both.all()]), [
      [head('ptr_1', 2)],
      [head('ptr_1', 2)],
      [head('ptr_1', 2)],
    ]);
    await both.close();
  },
);
