import { strict as assert } from 'node:assert';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import { takemark } from './command-line.js';

/**
 * An attacker that delivers files or can write the state file wants unsigned audio to be reported as valid.
 */
export const attack: Attack = {
  id: 'remembered-verdict',
  title: 'verify --resume says valid of nothing that the service does not call valid now',
  async run({ service, say }) {
    const { partnerId, apiKey } = await service.partner('standard');
    const proofId = await service.issue(partnerId, wav(200_000));
    const asset = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}/asset`, {
      headers: { 'x-api-key': apiKey },
    });
    const issued = Buffer.from(await asset.arrayBuffer());
    const directory = await mkdtemp(join(tmpdir(), 'takemark-delivery-'));
    try {
      const song = join(directory, 'song.wav');
      const state = join(directory, 'state');
      /** Writes a file with a fixed time, because an attacker can set the time of a file. */
      const deliver = async (bytes: Uint8Array): Promise<void> => {
        await writeFile(song, bytes);
        await utimes(song, 1_767_225_600, 1_767_225_600);
      };
      await deliver(issued);
      const verify = () =>
        takemark(
          { TAKEMARK_URL: service.partnerUrl, TAKEMARK_API_KEY: apiKey },
          'verify',
          song,
          '--resume',
          state,
          '--format',
          'csv',
        );
      const notGood = async (what: string): Promise<void> => {
        const { code, out } = await verify();
        assert.notEqual(code, 0, `${what}: exit 0, ${out}`);
        assert.doesNotMatch(out, /"good"/, what);
        say(`${what}: exit ${code}`);
      };
      assert.equal((await verify()).code, 0);
      assert.match((await verify()).err, /1 from the state file/);
      const remembered = await readFile(state, 'utf8');

      const other = Buffer.from(issued);
      for (let at = 1000; at < 100_000; at += 1) other[at] = other[at]! ^ 0x55;
      await deliver(other);
      await notGood('other audio of the same size and time');

      await deliver(wav(200_000));
      await writeFile(state, remembered.replaceAll(/"audio":"[0-9a-f]{64}"/g, '"audio":"00"'));
      await notGood('a line that was altered');
      await rm(state);

      await deliver(issued);
      await writeFile(state, remembered);
      const erased = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}`, {
        method: 'DELETE',
        headers: { 'x-api-key': apiKey },
      });
      assert.equal(erased.status, 200);
      await notGood('a proof that was erased since');
    } finally {
      await rm(directory, { recursive: true });
    }
  },
};
