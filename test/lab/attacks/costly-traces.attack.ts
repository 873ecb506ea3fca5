import { strict as assert } from 'node:assert';
import { writeClips } from '../../capture/write-trace.js';
import { manyDescendants, manyExports, manySignatures } from '../../evidence/costly-traces.js';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import { issueTraced, smallTrace } from './issue-traced.js';

/** The clips of an honest trace that is about as long as the costly ones. */
const HONEST_CLIPS = 65_536;
/**
 * The largest ratio of a costly trace's time to the honest one's. A costly trace has three times as many
 * events.
 */
const MOST_TIMES_HONEST = 20;
/** The costly traces that one partner sends at once, which are more than may wait. */
const AT_ONCE = 20;
/**
 * The largest ratio of another partner's wait to the time of the longest costly trace. It covers a running
 * trace and the partner's own turn.
 */
const MOST_TURNS = 3;
const SIGNATURES = 60_000;

export const attack: Attack = {
  id: 'costly-traces',
  title: 'small traces that are costly to replay hold up their own partner, and no other one',
  limitSeconds: 900,
  async run({ service, say }) {
    const attacker = await service.partner('standard');
    const other = await service.partner('standard');
    const audio = wav(50_000);
    const timed = async (partnerId: string, trace: Uint8Array) => {
      const began = performance.now();
      const status = await issueTraced(service, partnerId, trace, audio);
      return { status, seconds: (performance.now() - began) / 1000 };
    };
    const { bytes } = await writeClips(HONEST_CLIPS);
    const honest = await timed(other.partnerId, bytes);
    assert.equal(honest.status, 201);
    say(`an honest trace of ${HONEST_CLIPS} clips takes ${honest.seconds.toFixed(1)} s`);

    const costly = {
      descendants: await manyDescendants(),
      exports: await manyExports(),
      signatures: manySignatures(SIGNATURES),
    };
    let longest = 0;
    for (const [name, trace] of Object.entries(costly)) {
      const { status, seconds } = await timed(attacker.partnerId, trace);
      longest = Math.max(longest, seconds);
      say(`${name}, ${(trace.length / 1_048_576).toFixed(1)} MiB: ${status} after ${seconds.toFixed(1)} s`);
      assert.ok([201, 422].includes(status), `${name} is answered with ${status}`);
      if (name !== 'signatures')
        assert.ok(
          seconds < MOST_TIMES_HONEST * honest.seconds,
          `${name} takes ${(seconds / honest.seconds).toFixed(0)} times as long as an honest trace`,
        );
    }

    const small = await smallTrace();
    const flood = Promise.all(
      Array.from({ length: AT_ONCE }, () => timed(attacker.partnerId, costly.descendants)),
    );
    const waited = await timed(other.partnerId, small);
    say(`beside ${AT_ONCE} costly traces, another partner is served after ${waited.seconds.toFixed(1)} s`);
    const answers = (await flood).map(({ status }) => status);
    say(`the costly traces are answered with ${[...new Set(answers)].join(', ')}`);
    assert.equal(waited.status, 201, 'the other partner is not refused');
    assert.ok(
      waited.seconds < MOST_TURNS * longest + honest.seconds,
      `the other partner waited ${waited.seconds.toFixed(1)} s, and the longest trace takes ${longest.toFixed(1)} s`,
    );
  },
};
