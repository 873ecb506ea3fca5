import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { run } from '../../src/cli/program.js';
import type { Sealer } from '../../src/cli/sealer.js';
import { Terminal } from '../../src/cli/terminal.js';
import { defined } from '../../src/core/domain/defined.js';
import { ServiceDouble } from '../client/service-double.js';
import { wav } from '../fixtures/wav.js';
import { OperatorDouble } from './operator-double.js';

export const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Bench {
  readonly service: ServiceDouble;
  readonly operator: OperatorDouble;
  readonly directory: string;
  /** The long-running processes that were stopped. */
  readonly stopped: readonly string[];
  file(name: string, bytes?: Uint8Array): Promise<string>;
  takemark(...words: string[]): Promise<Ran>;
  /** Runs the command as on a terminal with colours. */
  onTerminal(...words: string[]): Promise<Ran>;
}

export async function setUp(
  test: Test,
  overrides: {
    readonly apiKey?: string | undefined;
    readonly profile?: string;
    /** The secret that is typed or piped in. */
    readonly secret?: string;
    readonly operatorToken?: string | undefined;
    readonly url?: string | undefined;
    readonly operatorUrl?: string | undefined;
    readonly dataDirectory?: string;
    readonly dataDirectoryNamed?: boolean;
    readonly ca?: string;
    readonly signingKey?: string;
    readonly allowPlainHttp?: boolean;
    readonly signal?: AbortSignal;
    readonly serversRefuse?: boolean;
  } = {},
): Promise<Bench> {
  const service = await new ServiceDouble().start();
  const operator = await new OperatorDouble().start();
  const directory = await mkdtemp(join(tmpdir(), 'takemark-cli-'));
  test.teardown(async () => {
    await Promise.all([service.stop(), operator.stop()]);
    await rm(directory, { recursive: true });
  });
  const stopped: string[] = [];
  const start = async (isTTY: boolean, words: string[]): Promise<Ran> => {
    const written = { out: '', err: '' };
    const output = (to: 'out' | 'err') => ({
      isTTY,
      columns: 100,
      hasColors: () => isTTY,
      write: (chunk: string) => ((written[to] += chunk), true),
    });
    const code = await run(words, {
      terminal: new Terminal(output('out'), output('err')),
      config: defined({
        url: service.url,
        operatorUrl: operator.url,
        apiKey: 'tmk_key',
        operatorToken: operator.token,
        dataDirectory: directory,
        profilesFile: join(directory, 'profiles', 'profiles.json'),
        allowPlainHttp: false,
        dataDirectoryNamed: false,
        ...overrides,
      }),
      version: '1.2.3',
      signal: overrides.signal ?? new AbortController().signal,
      openSealer: async (where) => sealerDouble(where),
      // Loading the engine takes longer than most tests of the command line.
      openFileKit: async () => (await import('../../src/service/compose/tools.js')).openFileKit(),
      readSecret: async () => overrides.secret ?? '',
      cluster: {
        migrate: async () => ({ applied: ['001-initial.cql'], topics: ['takemark.usage'] }),
        examineInstallation: async () => [
          { name: 'kafka.topics', found: 'all', wanted: 'all', verdict: 'ok' },
          {
            name: 'cassandra.paxos_variant',
            found: 'v1',
            wanted: 'v2',
            verdict: overrides.serversRefuse === true ? 'refuse' : 'warn',
            reason: 'slow\u0007',
          },
        ],
        listSettings: () => [{ name: 'TAKEMARK_PORT', value: '8080', source: 'default' }],
        checkConfig: async () => [{ name: 'TAKEMARK_PORT', found: 'x', wanted: 'y', verdict: 'ok' }],
        makeSecrets: async () => '{}\n',
        rotateSecrets: async ({ text }, { step, early, purposes }) =>
          `${text.trim()} ${step} ${early} ${purposes?.join('+')}\n`,
        makeBackup: async (_directory, readSnapshot) => {
          let bytes = 0;
          await readSnapshot(async (body) => {
            for await (const chunk of body) bytes += chunk.length;
          });
          return { takenAt: 1_767_225_600, rows: 3, files: 2, bytes, isBesideStore: true };
        },
        restoreBackup: async (_from, { acceptLostJournals }) => {
          if (!acceptLostJournals) throw new Error('there is no journal');
          return { takenAt: 1_767_225_600, rows: 3, files: 2, bytes: 4 };
        },
        exportInstallation: async (_path, passphrase) => ({
          exportId: 'export-1',
          rows: passphrase.length,
          proofs: 3,
          erased: 1,
        }),
        resumeService: async () => undefined,
        readExportedBundle: async () => '{}\n',
        importInstallation: async () => ({
          exportId: 'export-1',
          wasComplete: false,
          compared: 9,
          erased: 1,
        }),
        restore: async () => ({ epoch: 3, erasures: 7, erasedAgain: 2, usage: 30, left: 0, seconds: 0.5 }),
        requestLeaf: async () => 'a request\n',
        installLeaf: async (pem) => ({ kid: pem.trim(), notAfter: 1_767_225_600, former: 'ff' }),
        initAuthority: async (where) => `${where}\n`,
        issueLeaf: async (where, request, days) => ({
          pem: `${request.trim()} by ${where} for ${days}\n`,
          kid: 'ab',
          algorithm: 'Ed25519',
          subject: 'Takemark\u0007',
          notBefore: 1_767_225_600,
          notAfter: 1_767_225_600,
        }),
        serve: async () => ({ banner: 'serving', stop: async () => void stopped.push('service') }),
        consume: async () => ({ banner: 'consuming', stop: async () => void stopped.push('consumers') }),
      },
    });
    return { code, ...written };
  };
  return {
    service,
    operator,
    directory,
    stopped,
    async file(name, bytes = wav(1000)) {
      const path = join(directory, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, bytes);
      return path;
    },
    takemark: (...words) => start(false, words),
    onTerminal: (...words) => start(true, words),
  };
}

/** Returns a double of the device. The tests of the command cover only files and output. */
function sealerDouble(directory: string): Sealer {
  const facts = { sealedAt: 1_767_225_600, kid: 'ab'.repeat(32), device: `device in ${directory}` };
  return {
    embed: async (audio) => ({
      ...facts,
      file: (async function* () {
        yield* audio.read();
        yield Buffer.from('seal');
      })(),
    }),
    sidecar: async () => ({ ...facts, sidecar: Buffer.from('a sidecar') }),
    close: async () => undefined,
  };
}
