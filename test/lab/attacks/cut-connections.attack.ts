import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import type { ConfinedService } from './confined-service.js';

const PROOFS = 24;
/** The bytes of audio. They exceed the socket buffers: no answer can be sent while the client does not read. */
const AUDIO_BYTES = 6_000_000;
const READS_BEHIND = 30;
const SETTLE_MS = 20_000;

/**
 * Sends erasures on connections that are cut before the answer. Other answers, which are not read, precede
 * it.
 */
export const attack: Attack = {
  id: 'cut-connections',
  title: 'what a cut connection had carried out is logged and counted, and its files are closed',
  async run({ service, say }) {
    const { partnerId, apiKey } = await service.partner('volume');
    const large = await service.issue(partnerId, wav(AUDIO_BYTES));
    const proofs: string[] = [];
    for (let i = 0; i < PROOFS; i += 1)
      proofs.push(await service.issue(partnerId, wav(2000, {}, i + 1), `Song ${i}`));
    const head = (method: string, path: string): string =>
      `${method} /v1/proofs/${path} HTTP/1.1\r\nHost: a\r\nx-api-key: ${apiKey}\r\n\r\n`;
    const openBefore = await openAssets(service);

    for (const [i, proofId] of proofs.entries()) {
      const socket = connect(service.port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      socket.pause();
      // Every second erasure comes after a download that the client does not read.
      const before = i % 2 === 0 ? head('GET', `${large}/asset`) : '';
      socket.write(before + head('DELETE', proofId) + head('GET', `${large}/asset`).repeat(READS_BEHIND));
      // The connections are cut at various times, from before the erasure begins to after it has ended.
      await delay(i * 8);
      socket.resetAndDestroy();
    }

    const state = async () => {
      let erased = 0;
      for (const proofId of proofs)
        if (
          ((await service.operator('GET', `/proofs/${proofId}/erasure`)) as { state: string }).state ===
          'erased'
        )
          erased += 1;
      const logged = service.log.filter(
        (line) => line.includes('"method":"DELETE"') && line.includes('"route":"/v1/proofs/{proofId}"'),
      ).length;
      return { erased, logged, counted: await deletesCounted(service), open: await openAssets(service) };
    };
    const holds = ({ erased, logged, counted, open }: Awaited<ReturnType<typeof state>>): boolean =>
      logged >= erased && counted === logged && open <= openBefore;
    let now = await state();
    for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline && !holds(now); await delay(500))
      now = await state();
    say(
      `${now.erased} of ${PROOFS} erased, ${now.logged} erasures logged, ${now.counted} counted; ${now.open} files of deliverables open, ${openBefore} before`,
    );
    assert.ok(now.erased > 0, 'some were carried out');
    assert.ok(now.logged >= now.erased, 'each erasure that was carried out is logged');
    assert.equal(now.counted, now.logged, 'and counted');
    assert.ok(now.open <= openBefore, 'no file of a deliverable stays open');
    assert.ok(!service.ending()?.words.includes('DEP0137'));
  },
};

async function deletesCounted(service: ConfinedService): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${service.operatorPort}/metrics`)).text();
  const samples = text.matchAll(/^takemark_requests_total\{(.*)\} (\d+)$/gm);
  return [...samples]
    .filter(([, labels]) => labels!.includes('method="DELETE"') && labels!.includes('/v1/proofs/{proofId}"'))
    .reduce((sum, [, , value]) => sum + Number(value), 0);
}

async function openAssets({ pid, dataDirectory }: ConfinedService): Promise<number> {
  const targets = await Promise.all(
    (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
  );
  return targets.filter((target) => target.startsWith(`${dataDirectory}/assets/`)).length;
}
