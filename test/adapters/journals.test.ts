import { appendFile, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { AUDIT_HEADS_FILE, createAuditHeads } from '../../src/adapters/journals/audit-heads.js';
import { openErasureJournal } from '../../src/adapters/journals/erasure-journal.js';
import type { Secrets } from '../../src/ports/secrets.js';
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

t.test('journals', async (t) => {
  const directory = t.testdir();
  const secrets = secretsOf();
  const first = await openLogs(directory, secrets);
  const erasure = (n: number) => ({ proofId: `prf_${n}`, partnerId: 'ptr_1', erasedAt: 1_000 + n });
  await Promise.all(Array.from({ length: 50 }, (_, n) => first.journal.record(erasure(n))));
  await Promise.all(Array.from({ length: 50 }, (_, n) => first.heads.record({ partnerId: `ptr_${n % 2}`, sequence: n + 1, mac: 'ab'.repeat(32) })));
  await first.heads.record({ partnerId: 'ptr_0', sequence: 3, mac: 'cd'.repeat(32) });
  await first.close();
  for (const file of ['erasures.log', AUDIT_HEADS_FILE]) t.equal((await stat(join(directory, file))).mode & 0o777, 0o600);

  const path = join(directory, 'erasures.log');
  const whole = await readFile(path);
  const lastLine = whole.lastIndexOf(0x0a, whole.length - 2) + 1;
  for (const cut of [1, 2, 40, whole.length - lastLine - 1]) {
    await writeFile(path, whole.subarray(0, whole.length - cut));
    const torn = await openLogs(directory, secrets);
    const read = await all(torn.journal.read());
    t.equal(read.length, 49, `torn by ${cut}`);
    t.same(read[48], erasure(48));
    await torn.journal.record(erasure(99));
    t.same((await all(torn.journal.read())).at(-1), erasure(99), 'the next line stands where the torn one was');
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
  t.same(await kept.heads.get('ptr_0'), { partnerId: 'ptr_0', sequence: 49, mac: 'ab'.repeat(32) }, 'a lower sequence is ignored');
  t.equal((await readFile(join(directory, AUDIT_HEADS_FILE), 'utf8')).split('\n').length, 3, 'one line a partner once it was opened');
  t.equal(await kept.heads.get('ptr_9'), undefined);
  await kept.close();

  const small = await openLogs(directory, secrets, 10);
  for (let n = 100; n < 200; n++) await small.heads.record({ partnerId: 'ptr_0', sequence: n, mac: 'ef'.repeat(32) });
  t.ok((await readFile(join(directory, AUDIT_HEADS_FILE), 'utf8')).split('\n').length < 16, 'written anew when it has grown');
  await small.close();
  const again = await openLogs(directory, secrets);
  t.match(await again.heads.get('ptr_0'), { sequence: 199 });
  t.match(await again.heads.get('ptr_1'), { sequence: 50 });
  await again.close();
  await truncate(join(directory, AUDIT_HEADS_FILE), 0);
  await appendFile(join(directory, AUDIT_HEADS_FILE), 'not a line\nnor this\n');
  await t.rejects(openLogs(directory, secrets), { name: 'JournalOpenError' });
});
