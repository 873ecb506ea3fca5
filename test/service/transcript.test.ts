/** Runs the three flows of docs/partners/flows.md in a shell, as they are written there. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { startProxy } from '../docs/run-program.js';
import { collect, TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { noise, wav } from '../fixtures/wav.js';

const PAGE = new URL('../../../docs/partners/flows.md', import.meta.url);

t.test(
  'the three flows of docs/partners/flows.md run as they are written there',
  { skip: needs('curl', 'jq') },
  async (t) => {
    const [, script] = /^```sh\n([\s\S]*?)^```$/m.exec(await readFile(PAGE, 'utf8'))!;
    const service = await TestService.start();
    const directory = await mkdtemp(join(tmpdir(), 'takemark-transcript-'));
    t.teardown(async () => {
      await service.stop();
      await rm(directory, { recursive: true, force: true });
    });
    const { partnerId } = await service.partner();
    const single = await service.issue(partnerId, wav(1_400_000, { channels: 2 }));
    // A sidecar proof accepts any bytes that begin like its container, here the head of an MP3 frame.
    const pair = await service.issue(
      partnerId,
      Buffer.concat([Buffer.from('fffb9064', 'hex'), noise(300_000)]),
      { carrier: 'sidecar', fileName: 'song.mp3' },
    );
    await writeFile(join(directory, 'credentialed.wav'), single.file);
    await writeFile(join(directory, 'song.mp3'), pair.file);
    await writeFile(join(directory, 'song.sidecar'), pair.sidecar!);

    const proxy = await startProxy(t);
    for (const shell of ['bash', 'sh']) {
      const { keyId, apiKey } = await service.service.operations.operator.createKey({
        partnerId,
        name: shell,
      });
      // Standard input is not a pipe. Otherwise bash would behave like a remote shell and read the user's
      // start-up files.
      const child = spawn(shell, ['-c', script!], {
        cwd: directory,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...proxy.environment,
          PATH: process.env['PATH'],
          TAKEMARK_URL: service.partnerUrl,
          TAKEMARK_API_KEY: apiKey,
        },
      });
      const output = [collect(child.stdout), collect(child.stderr)];
      const [code] = (await once(child, 'exit')) as [number];
      const [stdout, stderr] = (await Promise.all(output)).map(String);
      t.equal(code, 0, `${shell} ends well`);
      t.equal(stderr, '', 'and nothing is complained about');
      t.equal(proxy.connections(), 0, 'no proxy sees the key');
      const answers = stdout!
        .trim()
        .split('\n')
        .map((line) => (line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : line));
      const stored = ({ length }: Buffer, sha256: string) => ({ uploadId: /^upl_/, bytes: length, sha256 });
      const digest = (file: Buffer) => createHash('sha256').update(file).digest('hex');
      t.equal(answers.length, 6, 'every answer is there');
      t.match(
        answers[0],
        {
          verdict: 'valid',
          good: true,
          proofId: single.proofId,
          decision: { status: 'verified_binding', credentialCarrier: 'embedded' },
        },
        'one file: valid',
      );
      t.match(answers[2], stored(pair.file, digest(pair.file)), 'pair: stored');
      for (const [at, way] of [
        [1, 'in one call'],
        [3, 'with a slot'],
      ] as const)
        t.match(
          answers[at],
          {
            verdict: 'valid',
            good: true,
            proofId: pair.proofId,
            decision: { status: 'verified_binding', credentialCarrier: 'sidecar' },
          },
          `pair: valid, ${way}`,
        );
      t.equal(answers[4], 'the same response again', 'rotation: replayed to the byte');
      const { keys } = answers[5] as { keys: { keyId: string; status: string; name: string }[] };
      t.match(
        keys.find((key) => key.keyId === keyId),
        { status: 'expiring', name: shell },
        'rotation: the old key is in its grace window',
      );
      t.equal(
        keys.filter(({ status, name }) => status === 'active' && name === shell).length,
        1,
        'beside its successor, which listed them',
      );
      t.notOk(stdout!.includes('tmk_'), 'no secret is printed');
    }
  },
);
