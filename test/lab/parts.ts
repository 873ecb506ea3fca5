/** The parts of the laboratory: what each of them runs, what it needs, and how long it usually takes on two cores. */
import type { Seeded } from '../fixtures/seeds.js';

export interface Part {
  readonly name: string;
  /** What the part shows, in one sentence. */
  readonly shows: string;
  /** The usual duration in minutes on two cores. */
  readonly minutes: number;
  /** The limit in minutes, after which the part is killed and red. Default: twice the usual duration, at least 15. */
  readonly limitMinutes?: number;
  /** True if the part needs Cassandra, Kafka and an object store, of the laboratory or named by the environment. */
  readonly servers?: boolean;
  /** The Debian packages that the part needs, each by the name of one of its programs. */
  readonly debian?: Readonly<Record<string, string>>;
  /** True if the part needs the Python environment of the independent C2PA readers, as `TAKEMARK_C2PA_PYTHON`. */
  readonly readers?: boolean;
  /** The list of `test/regressions/seeds.json` for a seed that finds a fault. */
  readonly regressions?: Seeded;
  /** Returns the commands in order. The part is red at the first one that fails. */
  commands(seed: number): readonly Command[];
}

export interface Command {
  readonly run: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** True if the command must fail because it has a planted defect. */
  readonly mustFail?: boolean;
}

const LAB = 'dist/test/lab';
const node = (program: string, ...args: readonly string[]): Command => ({
  run: ['node', `${LAB}/${program}`, ...args],
});
/** Returns the command that runs the named test files as the gate does, with the variables of a part. */
const tests = (files: readonly string[], env: Readonly<Record<string, string>>): Command => ({
  run: ['node', 'test/run.mjs', '--jobs=1', '--limit-seconds=3600', ...files],
  env,
});
const HISTORIES = 50_000;
const VALIDATORS = '.lab/validators';
/** The full run of the bench with this release of Node. */
const RELEASED_BENCH = `bench/released/node-${process.versions.node.split('.')[0]}.json`;

export const PARTS: readonly Part[] = [
  {
    name: 'gate',
    shows: 'The whole gate succeeds in a fresh clone of the commit.',
    minutes: 12,
    limitMinutes: 30,
    commands: () => [{ run: ['bash', 'test/lab/whole-gate.sh'] }],
  },
  {
    name: 'buildings',
    shows:
      'Each building of src is type-checked alone, with only the buildings and libraries that it states.',
    minutes: 1,
    commands: () => [
      { run: ['npm', 'run', '--silent', 'check:buildings'] },
      { run: ['node', 'test/check-buildings.mjs', '--plant', 'witness'], mustFail: true },
    ],
  },
  {
    name: 'supply-chain',
    shows:
      'The lock file, the licences and the bill of materials agree, and no dependency has a known advisory.',
    minutes: 1,
    commands: () => [{ run: ['npm', 'run', '--silent', 'check:supply-chain'] }],
  },
  {
    name: 'demo',
    shows: "The README's first command shows one verified verdict of each kind.",
    minutes: 1,
    commands: () => [{ run: ['node', 'dist/src/cli/main.js', 'demo'] }],
  },
  {
    name: 'readers',
    shows: 'Independent readers of Content Credentials and of audio agree with the core.',
    minutes: 2,
    debian: { ffprobe: 'ffmpeg', flac: 'flac', 'sndfile-info': 'sndfile-programs', sox: 'sox' },
    readers: true,
    commands: (seed) => [
      tests(['core/corpus', 'core/samples-conversions', 'credential/external-readers'], {
        TAKEMARK_LAB: 'readers',
        TAKEMARK_TEST_SEED: String(seed),
      }),
    ],
  },
  {
    name: 'programs',
    shows:
      'Other programs do with the service what the docs say: nginx, shells, Go, ffmpeg, promtool, a token.',
    minutes: 4,
    debian: {
      ffmpeg: 'ffmpeg',
      fish: 'fish',
      go: 'golang',
      javac: 'default-jdk-headless',
      nginx: 'nginx-light',
      'pkcs11-tool': 'opensc',
      promtool: 'prometheus',
      'softhsm2-util': 'softhsm2',
      zsh: 'zsh',
    },
    commands: () => [
      tests(
        [
          'cli/completion',
          'credential/offline-authority',
          'docs/alerts',
          'docs/dashboards',
          'docs/deployment',
          'docs/examples',
          'docs/partners',
          'docs/quick-start',
          'docs/samples',
          'service/containers',
          'service/proxy',
        ],
        { TAKEMARK_LAB: 'programs' },
      ),
    ],
  },
  {
    name: 'artifact',
    shows:
      'The steps of the Dockerfile make the artifact in a fresh clone, which starts within 1.5 s on a quiet machine; validators take unit and manifests.',
    minutes: 8,
    debian: { kubectl: 'kubernetes-client', python3: 'python3-venv', 'systemd-analyze': 'systemd' },
    commands: () => [
      { run: ['python3', '-m', 'venv', VALIDATORS] },
      { run: [`${VALIDATORS}/bin/pip`, 'install', '--quiet', 'kubernetes-validate==1.37.0'] },
      tests(['service/artifact', 'docs/deployment'], {
        TAKEMARK_LAB: 'artifact',
        PATH: `${VALIDATORS}/bin:${process.env['PATH']}`,
      }),
    ],
  },
  {
    name: 'browsers',
    shows: 'The pages are legible, complete and silent in Chromium, on screens and printed.',
    minutes: 3,
    debian: { chromium: 'chromium', pdftotext: 'poppler-utils' },
    commands: () => [tests(['http/docs-browser', 'evidence/page'], { TAKEMARK_LAB: 'browsers' })],
  },
  {
    name: 'workstations',
    shows: 'The agents witness sessions in the real Ardour and the real Audacity.',
    minutes: 14,
    debian: { ardour: 'ardour', 'ardour7-lua': 'ardour', audacity: 'audacity', Xvfb: 'xvfb', xauth: 'xauth' },
    commands: () => [
      tests(
        [
          'agents/ardour-export',
          'agents/ardour-hook',
          'agents/ardour-laundering',
          'agents/ardour-session',
          'agents/ardour-takes',
          'agents/ardour-unseen',
          'agents/ardour-window',
          'agents/audacity',
          'agents/audacity-unseen',
        ],
        { TAKEMARK_LAB: 'workstations' },
      ),
    ],
  },
  {
    name: 'honest-sessions',
    shows:
      'Honest sessions of ten kinds in the real Ardour ask for no review, and independent readers trust their files.',
    minutes: 12,
    debian: { 'ardour7-lua': 'ardour' },
    readers: true,
    commands: () => [tests(['agents/ardour-honest'], { TAKEMARK_LAB: 'workstations' })],
  },
  {
    name: 'node-26',
    shows: 'What rests on Node itself works on the newest long-term release too.',
    minutes: 8,
    servers: true,
    commands: () => [{ run: ['bash', 'test/lab/other-node.sh', '26.10.0'] }],
  },
  {
    name: 'eight-lanes',
    shows:
      "The core is right in the code that V8's experimental flag makes, and the engine uses it where it is faster.",
    minutes: 3,
    commands: () => [
      {
        run: ['bash', 'test/lab/other-node.sh', '26.10.0', 'core', 'engine'],
        env: { TAKEMARK_LAB: 'eight-lanes' },
      },
    ],
  },
  {
    name: 'requests',
    shows: 'The service answers 60,000 requests derived from its own document as the document says.',
    minutes: 4,
    regressions: 'requests',
    commands: (seed) => [
      tests(['contract/generated'], { TAKEMARK_TEST_SEED: String(seed), TAKEMARK_REQUESTS: '60000' }),
    ],
  },
  {
    name: 'exhaustive',
    shows: 'What the gate samples is covered in full: every place, every change and every round.',
    minutes: 20,
    commands: () => [
      tests(
        [
          'adapters/row-decoder',
          'cli/batch',
          'core/sha256',
          'credential/embedded',
          'credential/foreign',
          'credential/hostile-stores',
          'credential/malleability',
          'credential/sidecar',
          'docs/client-package',
          'engine/engine',
          'evidence/replay',
          'evidence/trace',
          'evidence/trace-damage',
          'evidence/trace-hostile',
          'evidence/work-budget',
          'http/abandoned-calls',
          'lab/simulation/simulation',
          'operations/identify',
          'service/binding',
          'service/evidence-damage',
          'service/stripping',
        ],
        { TAKEMARK_EXHAUSTIVE: '1' },
      ),
    ],
  },
  {
    name: 'rounds',
    shows: 'What the gate samples on real servers is played in full: 200 raced erasures, every canary.',
    minutes: 2,
    servers: true,
    commands: () => [
      tests(['adapters/cassandra-decisions', 'service/shredding-servers'], { TAKEMARK_EXHAUSTIVE: '1' }),
    ],
  },
  {
    name: 'kills',
    shows:
      'Nothing acknowledged is lost in 300 kills of an embedded store, and in 50 of a service that issues and 50 of one that changes kept rows.',
    minutes: 15,
    regressions: 'kills',
    commands: (seed) => [
      tests(['adapters/embedded-kill', 'service/kill', 'service/kept-rows-kill'], {
        TAKEMARK_TEST_SEED: String(seed),
        TAKEMARK_KILLS: '300',
        TAKEMARK_ISSUE_KILLS: '50',
        TAKEMARK_KEPT_ROWS_KILLS: '50',
      }),
    ],
  },
  {
    name: 'fuzz',
    shows: 'Every reader of bytes from strangers survives inputs that its own coverage guides.',
    minutes: 12,
    commands: (seed) => [
      node('fuzz/main.js', '--seconds', '60', '--seed', String(seed)),
      node('fuzz/core-fuzz.js', '--runs', '2000000', '--seed', String(seed)),
    ],
  },
  {
    name: 'samples',
    shows: 'The readers of samples survive hostile files, and decode every FLAC file right, for an hour.',
    minutes: 60,
    limitMinutes: 120,
    commands: (seed) => [node('fuzz/samples-fuzz.js', '--seconds', '3600', '--seed', String(seed))],
  },
  {
    name: 'attacks',
    shows: 'A service in 512 MiB of memory lives through every attack and serves others meanwhile.',
    minutes: 13,
    commands: () => [node('attacks/main.js')],
  },
  {
    name: 'document',
    shows:
      'A linter for OpenAPI finds no error in the document of partners and in the document of operators.',
    minutes: 1,
    commands: () => [
      {
        run: [
          'npm',
          'exec',
          '--yes',
          '--package=@redocly/cli@2.77.0',
          '--',
          'redocly',
          'lint',
          '--config=deploy/openapi/redocly.yaml',
          'deploy/openapi/takemark.json',
          'deploy/openapi/operator.json',
        ],
        env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      },
    ],
  },
  {
    name: 'large-files',
    shows:
      'Files of up to 2 GiB are uploaded, issued, downloaded and erased within 512 MiB of memory, also after kills.',
    minutes: 20,
    commands: () => [tests(['service/large-pairs'], { TAKEMARK_LAB: 'large-files' }), node('large/main.js')],
  },
  {
    name: 'large-files-servers',
    shows: 'The same is true of a service on Cassandra and a bucket, which gets the files in parts.',
    minutes: 28,
    servers: true,
    commands: () => [node('large/main.js', '--servers', '--kill-size', '320')],
  },
  {
    name: 'clients',
    shows:
      'Clients generated in four languages and the Python package send a file and read every answer, and each planted defect of the document is found.',
    minutes: 20,
    debian: { go: 'golang', mvn: 'maven', javac: 'default-jdk-headless' },
    commands: () => [
      node('clients/main.js'),
      ...['words', 'versions', 'members', 'numbers'].map((plant) => ({
        ...node('clients/main.js', '--plant', plant),
        mustFail: true,
      })),
    ],
  },
  {
    name: 'centres',
    shows: 'Over two data centres nothing is decided twice or read stale.',
    minutes: 2,
    commands: () => [node('cluster/centres.js')],
  },
  {
    name: 'cluster',
    shows: 'Three nodes, three brokers and five processes keep what was acknowledged while servers fail.',
    minutes: 10,
    commands: (seed) => [node('cluster/cluster.js', '--seed', String(seed))],
  },
  {
    name: 'outages',
    shows:
      'Outages are caused one by one, and the alert of each fires on a real Prometheus with the right labels.',
    minutes: 12,
    debian: { prometheus: 'prometheus' },
    commands: () => [node('outages/main.js')],
  },
  {
    name: 'dashboards',
    shows:
      'Every expression of the dashboards has series in a real Prometheus over two services and a consumer under load.',
    minutes: 4,
    debian: { prometheus: 'prometheus' },
    commands: () => [node('dashboards/main.js')],
  },
  {
    name: 'restarts',
    shows:
      'Twenty restarts of two processes under load, behind nginx and behind HAProxy, lose no call that is repeated once.',
    minutes: 12,
    debian: { haproxy: 'haproxy', nginx: 'nginx-light' },
    commands: () => [node('restarts/main.js')],
  },
  {
    name: 'backup',
    shows:
      'A backup under load keeps what was acknowledged and every erasure. Kills at ten places of a backup and of a restore leave nothing that passes for whole.',
    minutes: 5,
    commands: () => [tests(['service/backup-drill'], { TAKEMARK_EXHAUSTIVE: '1' })],
  },
  {
    name: 'move',
    shows:
      'A machine with 100,000 proofs moves to a cluster although export and import are killed, and both sides give the same answers.',
    minutes: 30,
    limitMinutes: 120,
    commands: () => [node('move/main.js')],
  },
  {
    name: 'tombstones',
    shows: 'No read of Cassandra passes over more than 10,000 tombstones after 180,000 issued proofs.',
    minutes: 25,
    servers: true,
    // The fixtures import tap, which ends a process after 30 seconds unless it gets another limit.
    commands: () => [{ ...node('tombstones/main.js'), env: { TAP_TIMEOUT: '0' } }],
  },
  ...[1, 2].map((half) => ({
    name: `histories-${half}`,
    shows: `${HISTORIES} simulated histories of mixed faults have no violation.`,
    minutes: 35,
    regressions: 'histories' as const,
    commands: (seed: number) => [
      node('simulation/main.js', '--histories', String(HISTORIES), '--seed', String(seed)),
    ],
  })),
  {
    name: 'bench',
    shows: 'The whole bench runs, its answers are right, and it is compared with the last release.',
    minutes: 10,
    commands: () => [
      {
        run: ['node', 'dist/bench/main.js', '--compare', RELEASED_BENCH, '--advisory'],
      },
    ],
  },
  {
    name: 'chaos',
    shows: 'An hour of every fault, then a backup is put back: the list of violations is empty.',
    minutes: 75,
    limitMinutes: 120,
    debian: { faketime: 'faketime', ip: 'iproute2' },
    commands: (seed) => [
      node(
        'cluster/chaos.js',
        '--minutes',
        '60',
        '--faults',
        'all',
        '--restore',
        'yes',
        '--seed',
        String(seed),
      ),
    ],
  },
];
