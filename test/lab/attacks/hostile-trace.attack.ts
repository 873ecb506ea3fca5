import { strict as assert } from 'node:assert';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { TRACE_LIMITS } from '../../../src/witness/domain/trace.js';
import { MAX_DERIVATIONS } from '../../../src/witness/replay/source-map.js';
import { writeTrace } from '../../capture/write-trace.js';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import { CONTAINER_MIB, type ConfinedService } from './confined-service.js';
import { HealthPulse } from './health-pulse.js';
import { formHead, issueTraced, PART_HEAD, smallTrace } from './issue-traced.js';
import { renew } from './post.js';
import { assertServed } from './victim.js';

const FORMS = 64;
const BEAT_MS = 200;
const PIECE = Buffer.alloc(100);
/** The number of concurrent traces. One is replayed and the others wait. */
const GREAT_TRACES = 3;
/** The memory left for the page cache and other use, in MiB. */
const SPARE_MIB = 64;
/** The bytes that stay free after the last event of a trace. */
const RESERVE = 1_048_576;

export const attack: Attack = {
  id: 'hostile-trace',
  title:
    'traces that stall, trickle or are as large as they may be take neither memory nor the time of partners',
  limitSeconds: 900,
  async run({ service, say }) {
    const { partnerId, apiKey } = await service.partner('standard');
    const small = await smallTrace();
    const audio = wav(50_000);

    const end = new AbortController();
    const began = performance.now();
    const first = small.subarray(0, 100);
    const posts = Array.from({ length: FORMS }, (_, index) =>
      renew(service.operatorPort, end.signal, async (socket) => {
        socket.write(Buffer.concat([formHead(service, partnerId, 60_000_000), PART_HEAD, first]));
        while (index % 2 === 0 && !socket.destroyed) {
          socket.write(PIECE);
          await delay(BEAT_MS, undefined, { ref: false });
        }
      }),
    );
    try {
      say(`half of ${FORMS} forms stall, half trickle: ${await pulsing(service, apiKey)}`);
      assert.equal(await issueTraced(service, partnerId, small, audio), 201, 'an honest trace gets through');
    } finally {
      end.abort();
      const bytes = (await Promise.all(posts)).reduce((sum, sent) => sum + sent, 0);
      say(`the attacker sent ${Math.round(bytes / (performance.now() - began))} KB/s`);
    }
    say(`at most ${(await service.peakMiB()).toFixed(0)} MiB so far`);

    const great = await greatTrace();
    let over = false;
    let most = 0;
    const watching = (async () => {
      for (; !over; await delay(100)) most = Math.max(most, await service.rssMiB());
    })();
    const outcomes = Promise.all(
      Array.from({ length: GREAT_TRACES }, () => issueTraced(service, partnerId, great, audio)),
    );
    say(
      `${GREAT_TRACES} traces of ${Math.round(great.length / 1_048_576)} MiB: ${await pulsing(service, apiKey)}`,
    );
    const statuses = await outcomes;
    over = true;
    await watching;
    say(`answered with ${statuses.join(', ')}; resident ${most.toFixed(0)} MiB`);
    assert.ok(most <= CONTAINER_MIB - SPARE_MIB, `${most.toFixed(0)} MiB resident`);
    // A busy machine may not replay the trace in time.
    for (const status of statuses) assert.ok([201, 422, 503].includes(status), `answered with ${status}`);
    assert.equal(await issueTraced(service, partnerId, small, audio), 201, 'the next trace finds a thread');
  },
};

/**
 * Uploads for an honest partner while health is polled.
 * @throws AssertionError
 */
async function pulsing(service: ConfinedService, apiKey: string): Promise<string> {
  const health = new HealthPulse(service.partnerUrl);
  const words = await assertServed(service, apiKey).finally(() => health.stop());
  const { unanswered, p50, p99, worst } = await health.stop();
  assert.equal(unanswered, 0, 'health is answered all the while');
  return `${words}; health p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)}, worst ${worst.toFixed(0)} ms`;
}

/** Returns a trace with the most live objects and the most bytes that a trace may have. */
async function greatTrace(): Promise<Buffer> {
  const { live, traceBytes } = TRACE_LIMITS;
  const digest = (): string => randomBytes(32).toString('hex');
  let bytes = 0;
  const { bytes: trace } = await writeTrace(async (writer) => {
    const flush = async (): Promise<void> => {
      bytes += writer.bufferedBytes;
      await writer.flush();
    };
    const each = async (count: number, append: (id: number) => void): Promise<void> => {
      for (let id = 1; id <= count; id += 1) {
        append(id);
        if (id % 4096 === 0) await flush();
      }
    };
    let at = 0;
    writer.append({ kind: 'session.opened', at, sampleRate: 48_000 });
    await each(live.tracks, (track) => writer.append({ kind: 'track.added', at, track, type: 'audio' }));
    await each(live.plugins, (plugin) => writer.append({ kind: 'plugin.added', at, plugin, type: 'effect' }));
    await each(live.tempoPoints, (start) =>
      writer.append({ kind: 'tempo.point', at, start, bpm: 60 + (start % 100) }),
    );
    await each(live.takes, (take) => {
      writer.append({ kind: 'recording.started', at: (at += 1), take, track: 1, input: 'hardware' });
      for (let step = 1; step <= 8; step += 1)
        writer.append({ kind: 'recording.grew', at: (at += 1), take, frames: step * 48_000 });
    });
    await each(live.sources, (source) =>
      writer.append({
        kind: 'import.added',
        at,
        source,
        manner: 'copied',
        samplesSha256: digest(),
        originalSha256: digest(),
        frames: 48_000,
        rate: 48_000,
        channels: 2,
      }),
    );
    // As many derivations as a replay follows. None of their sources has a declaration.
    const rows = MAX_DERIVATIONS / live.sources;
    for (let step = 1; step < rows; step += 1)
      await each(live.sources, (from) =>
        writer.append({
          kind: 'source.derived',
          at,
          source: 1 + ((from + step) % live.sources),
          from,
          manner: 'combine',
        }),
      );
    await each(live.clips, (clip) =>
      writer.append({
        kind: 'clip.created',
        at: (at += 1),
        clip,
        track: 1 + (clip % live.tracks),
        source: 1 + (clip % live.sources),
        base: 'beats',
        start: clip + 0.5,
        length: 1.25,
      }),
    );
    // Each event has a different string, so that no string is shared.
    while (bytes < traceBytes - RESERVE)
      await each(4096, () => {
        const fileSha256 = digest();
        writer.append({ kind: 'export.finished', at: (at += 1000), fileSha256, rerender: 'not_tried' });
      });
    await writer.seal();
  });
  return trace;
}
