/** The programs of the quick start at `/docs`, as they are printed there. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';
import { compile } from './compile.js';
import { runProgram, startProxy } from './run-program.js';

interface Language {
  readonly file: string;
  readonly programs: readonly string[];
  /** The command in the program's directory. */
  readonly command: string;
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  shell: { file: 'quick.sh', programs: ['curl', 'jq'], command: 'sh quick.sh' },
  typescript: {
    file: 'quick.mts',
    programs: [process.execPath],
    command: `'${process.execPath}' quick.mjs`,
  },
  python: { file: 'quick.py', programs: ['python3'], command: 'python3 quick.py' },
};

t.test('each program of the quick start verifies a file', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, apiKey } = await service.partner();
  const { file: valid } = await service.issue(partnerId, wav(48_000));
  const altered = Buffer.from(valid);
  altered[altered.length - 1000]! ^= 1;
  const page = await (await fetch(`${service.partnerUrl}/docs.md`)).text();
  const start = page.slice(page.indexOf('## Quick start'), page.indexOf('## Verification'));
  const programs = new Map(
    [...start.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => [language!, code!]),
  );
  t.strictSame([...programs.keys()], Object.keys(LANGUAGES));
  for (const [id, { file, programs: needed, command }] of Object.entries(LANGUAGES))
    await t.test(id, { skip: needs(...needed) }, async (t) => {
      const directory = t.testdir({ [file]: programs.get(id)! });
      if (file.endsWith('.mts')) t.equal(compile(join(directory, file), { directory }), '');
      for (const [audio, answer] of [
        [valid, { verdict: 'valid', good: true, status: 'verified_binding' }],
        [altered, { verdict: 'tampered', good: false, status: 'invalid_proof' }],
      ] as const) {
        await writeFile(join(directory, 'song.wav'), audio);
        const { code, out, err } = await runProgram('sh', ['-c', `cd "$0" && ${command}`, directory], {
          TAKEMARK_URL: service.partnerUrl,
          TAKEMARK_API_KEY: apiKey,
        });
        t.strictSame([code, err], [0, ''], out);
        t.strictSame(JSON.parse(out), answer);
      }
      const proxy = await startProxy(t);
      const past = await runProgram('sh', ['-c', `cd "$0" && ${command}`, directory], {
        ...proxy.environment,
        TAKEMARK_URL: service.partnerUrl,
        TAKEMARK_API_KEY: apiKey,
      });
      t.strictSame([past.code, proxy.connections()], [0, 0], `no proxy sees the key: ${past.err}`);
      const refused = await runProgram('sh', ['-c', `cd "$0" && ${command}`, directory], {
        TAKEMARK_URL: service.partnerUrl,
        TAKEMARK_API_KEY: `${apiKey.slice(0, -1)}!`,
      });
      t.not(refused.code, 0, 'a refused key gives no verdict');
      t.notMatch(refused.out, /valid/);
    });
});
