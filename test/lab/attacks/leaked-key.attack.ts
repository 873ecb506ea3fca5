import assert from 'node:assert/strict';
import { hkdfSync, randomUUID } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { formatApiKey } from '../../../src/service/domain/partner-key.js';
import type { Attack } from './attack.js';

const ROTATIONS = 4;

/** Rows of the copy from which a successor could be derived. */
interface Loot {
  readonly secrets: readonly Buffer[];
  /** The texts of one rotation's rows, by the key that was rotated. */
  readonly rows: ReadonlyMap<string, readonly string[]>;
}

/**
 * A partner rotates because a key leaked. An attacker with that key and a later copy of the data directory
 * must not get the current key.
 */
export const attack: Attack = {
  id: 'leaked-key',
  title: 'a rotation recovers from a leaked key, also when the attacker has a copy of the data directory',

  async run({ service, say }) {
    const { partnerId, keyId, apiKey: leaked } = await service.partner('standard');
    const chain = [{ keyId, apiKey: leaked, idempotencyKey: '' }];
    for (let i = 0; i < ROTATIONS; i += 1) {
      const idempotencyKey = randomUUID();
      const response = await fetch(`${service.partnerUrl}/v1/partner/keys/rotate`, {
        method: 'POST',
        headers: { 'x-api-key': chain.at(-1)!.apiKey, 'idempotency-key': idempotencyKey },
      });
      assert.equal(response.status, 201);
      chain.push({ ...((await response.json()) as { keyId: string; apiKey: string }), idempotencyKey });
    }
    await service.stop();
    const copy = await mkdtemp(join(tmpdir(), 'takemark-copy-'));
    try {
      await cp(service.dataDirectory, copy, { recursive: true });
      await service.restart();
      const loot = await takeLoot(copy);
      const opens = async (apiKey: string) =>
        (await fetch(`${service.partnerUrl}/v1/partner/keys`, { headers: { 'x-api-key': apiKey } }))
          .status === 200;

      // A control of the tool. With the Idempotency-Key, which the partner sent and the service does not
      // store, the tool derives a successor.
      const known = derivations(loot, partnerId, keyId, leaked, [chain[1]!.idempotencyKey]);
      assert.ok(
        known.includes(chain[1]!.apiKey),
        'the tool of this attack does not derive what the service derives',
      );

      let held = { keyId, apiKey: leaked };
      let steps = 0;
      let tried = 0;
      for (; steps < ROTATIONS; steps += 1) {
        const candidates = derivations(loot, partnerId, held.keyId, held.apiKey, []);
        tried += candidates.length;
        const answers = await Promise.all(candidates.map(opens));
        const found = candidates[answers.indexOf(true)];
        if (found === undefined) break;
        held = { keyId: found.split('_').slice(2, 4).join('_'), apiKey: found };
      }
      say(`derived ${steps} of ${ROTATIONS} successors with ${tried} candidates`);
      assert.ok(tried > 0, 'nothing was tried');
      assert.equal(
        steps,
        0,
        `the leaked key and the copy gave ${steps} later keys${held.apiKey === chain.at(-1)!.apiKey ? ', the current one among them' : ''}`,
      );
    } finally {
      await rm(copy, { recursive: true, force: true });
    }
  },
};

async function takeLoot(copy: string): Promise<Loot> {
  const names = await readdir(copy, { recursive: true });
  const bundle = JSON.parse(await readFile(join(copy, 'secrets.json'), 'utf8')) as {
    secrets: { rotation: readonly { key: string }[] };
  };
  const store = join(copy, names.find((name) => name.endsWith('/CURRENT'))!, '..');
  const level = new ClassicLevel<string, Uint8Array>(store, { valueEncoding: 'view' });
  const rows = new Map<string, string[]>();
  for await (const [key, row] of level.iterator({ gte: 'rotation', lt: 'rotatioo' })) {
    const keyId = key.slice(key.lastIndexOf('/') + 1);
    const texts = rows.get(keyId) ?? [];
    rows.set(keyId, texts);
    texts.push(
      ...(Buffer.from(row)
        .toString('latin1')
        .match(/[\x21-\x7e]{8,}/g) ?? []),
    );
  }
  await level.close();
  return { secrets: bundle.secrets.rotation.map(({ key }) => Buffer.from(key, 'base64')), rows };
}

/** Returns the successors of a key for every combination of stored values and guesses. */
function derivations(
  { secrets, rows }: Loot,
  partnerId: string,
  keyId: string,
  apiKey: string,
  guesses: readonly string[],
): readonly string[] {
  const text = (rows.get(keyId) ?? []).join(' ');
  const successors = new Set(
    [...text.matchAll(/key_[0-9A-HJKMNP-TV-Z]{26}/g)].map(([id]) => id).filter((id) => id !== keyId),
  );
  const values = [...new Set([...text.matchAll(/[0-9a-f]{64}/g)].map(([value]) => value))];
  const inputs = [apiKey, ...['', ...values, ...guesses].map((guess) => JSON.stringify([apiKey, guess]))];
  const found: string[] = [];
  for (const newKeyId of successors) {
    for (const nonce of values) {
      const info = JSON.stringify(['takemark rotation', 'production', partnerId, keyId, newKeyId, nonce]);
      for (const secret of secrets)
        for (const input of inputs)
          found.push(
            formatApiKey('production', newKeyId, new Uint8Array(hkdfSync('sha256', input, secret, info, 32))),
          );
    }
  }
  return found;
}
