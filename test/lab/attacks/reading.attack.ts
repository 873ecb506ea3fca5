import { strict as assert } from 'node:assert';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { withStore } from '../../fixtures/credentialed-file.js';
import { foreignManifest, foreignSigner, storeOf } from '../../fixtures/foreign-store.js';
import { readingProcessesOf } from '../../fixtures/reading-processes.js';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import type { ConfinedService } from './confined-service.js';
import { type Outcome, uploadOnce, verifyOnce } from './partner-calls.js';

const ROUNDS = 2;
const RECOVERY_ATTEMPTS = 30;

/** Stops and kills the process that reads certificates, as a malicious file in it could do. */
export const attack: Attack = {
  id: 'reading',
  title: 'an attacker in the reader of foreign certificates stops nothing else, and finds no secret there',
  limitSeconds: 300,
  async run({ service, say }) {
    const { partnerId, apiKey } = await service.partner('volume');
    const proofId = await service.issue(partnerId, wav(50_000));
    const asset = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}/asset`, {
      headers: { 'x-api-key': apiKey },
    });
    const own = Buffer.from(await asset.arrayBuffer());
    const foreign = withStore(wav(50_000), storeOf([foreignManifest(foreignSigner('ES256'), {})]));

    const readers = await readingProcessesOf(service.pid);
    assert.equal(readers.length, 1, "strangers' certificates are read in a process of their own");
    const { pid } = readers[0]!;
    assert.equal(await readFile(`/proc/${pid}/environ`, 'utf8'), '');
    const open = await Promise.all(
      (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
    );
    assert.deepEqual(
      open.filter((path) => path.includes(service.dataDirectory)),
      [],
    );
    const maps = await readFile(`/proc/${pid}/maps`, 'latin1');
    assert.ok(!maps.includes(service.dataDirectory));

    const posted = async (file: Uint8Array): Promise<string> => {
      const stored = await uploadOnce(service, apiKey, file);
      return stored.status === 201
        ? (await verifyOnce(service, apiKey, stored.uploadId!)).verdict!
        : words(stored);
    };
    assert.equal(await posted(foreign), 'unregistered');
    assert.equal(await posted(own), 'valid');

    const counts = new Map<string, number>();
    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
      let over = false;
      const harassing = (async () => {
        while (!over) {
          for (const reader of await readingProcessesOf(service.pid)) process.kill(reader.pid, signal);
          await delay(20);
        }
      })();
      for (let round = 0; round < ROUNDS; round += 1) {
        const [ofOwn, ...ofForeign] = await Promise.all([
          posted(own),
          posted(foreign),
          posted(foreign),
          posted(foreign),
        ]);
        assert.equal(ofOwn, 'valid', `while the reader gets ${signal}`);
        for (const outcome of ofForeign)
          counts.set(`${signal}: ${outcome}`, (counts.get(`${signal}: ${outcome}`) ?? 0) + 1);
      }
      over = true;
      await harassing;
      // Kills the readers that are still stopped. The service would replace them only at its time limit.
      for (const reader of await readingProcessesOf(service.pid)) process.kill(reader.pid, 'SIGKILL');
    }
    const slot = await slotOf(service, apiKey);
    const cut = new AbortController();
    const killing = (async () => {
      while (!cut.signal.aborted) {
        for (const reader of await readingProcessesOf(service.pid)) process.kill(reader.pid, 'SIGKILL');
        await delay(5);
      }
    })();
    const refused = await postTo(slot, foreign);
    cut.abort();
    await killing;
    const allowed = /: (unregistered|503 reader_failed|503 reader_full)$/;
    assert.deepEqual(
      [...counts.keys()].filter((outcome) => !allowed.test(outcome)),
      [],
      'an answer is the verdict or a typed refusal',
    );
    assert.ok(
      [...counts.keys()].some((outcome) => outcome.includes('503')),
      'the attack reached the readings',
    );

    let recovered = '';
    for (let attempt = 0; attempt < RECOVERY_ATTEMPTS && recovered !== 'unregistered'; attempt += 1)
      recovered = await posted(foreign);
    assert.equal(recovered, 'unregistered', 'it reads again');
    if (refused === 503) {
      assert.equal(await postTo(slot, foreign), 201, 'the slot of a refused post is open still');
      counts.set('posted again to its slot: 201', 1);
    }
    say([...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', '));
  },
};

interface Slot {
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
}

async function slotOf(service: ConfinedService, apiKey: string): Promise<Slot> {
  const response = await fetch(`${service.partnerUrl}/v1/uploads`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: '{"purpose":"verify"}',
  });
  assert.equal(response.status, 201);
  return (await response.json()) as Slot;
}

async function postTo({ url, fields }: Slot, file: Uint8Array): Promise<number> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append('file', new Blob([Buffer.from(file)]), 'take.wav');
  const { status } = await fetch(url, { method: 'POST', body: form });
  return status;
}

function words({ status, reason }: Outcome): string {
  return `${status} ${reason}`;
}
