/** Files for operators in `deploy/`: they name settings that exist, agree with each other, and are valid. */
import { execFile } from 'node:child_process';
import { copyFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { listSettings } from '../../src/service/config/listed-settings.js';
import { needs } from '../fixtures/tools.js';
import { ROOT } from './pages.js';

const DEPLOY = join(ROOT, 'deploy');
const UNIT = 'systemd/takemark.service';
const CLUSTER_UNIT = 'systemd/takemark@.service';
const MANIFESTS = 'kubernetes';
/** Lines that each unit has of its own: its program, its directories and its settings. */
const OWN = /^(?:Description|RequiresMountsFor|Exec\w+|Environment(?:File)?|StateDirectory)=/;
/** Seconds that a supervisor waits beyond drain and grace. */
const MARGIN_SECONDS = 15;
/** The highest exposure in tenths that `systemd-analyze security` may find. */
const MAX_EXPOSURE = 20;
const run = promisify(execFile);

const read = (file: string): Promise<string> => readFile(join(DEPLOY, file), 'utf8');

async function manifests(): Promise<ReadonlyMap<string, string>> {
  const files = (await readdir(join(DEPLOY, MANIFESTS), { recursive: true })).filter((file) =>
    file.endsWith('.yaml'),
  );
  return new Map(
    await Promise.all(files.map(async (file) => [file, await read(join(MANIFESTS, file))] as const)),
  );
}

/** Returns the number that a name is given in a text. */
function numberOf(text: string, name: string): number {
  return Number(new RegExp(`${name}[=:] ?"?(\\d+)`).exec(text)?.[1]);
}

t.test(
  'every variable in a file for operators is a setting, and the image has the release of Node',
  async (t) => {
    const settings = new Set(listSettings({}).map(({ name }) => name));
    const texts = [
      await read('Dockerfile'),
      await read('compose.yaml'),
      await read(UNIT),
      await read(CLUSTER_UNIT),
    ];
    const named = [...texts, ...(await manifests()).values()].flatMap(
      (text) => text.match(/\bTAKEMARK_[A-Z0-9_]+/g) ?? [],
    );
    t.match(texts[0], `ARG NODE=${(await readFile(join(ROOT, '.nvmrc'), 'utf8')).trim()}\n`);
    t.ok(named.length > 50, `${named.length} names`);
    t.strictSame(
      named.filter((name) => !settings.has(name)),
      [],
    );
  },
);

t.test('every supervisor waits 15 seconds longer than a stop may take', async (t) => {
  const [drain, grace] = ['TAKEMARK_DRAIN_SECONDS', 'TAKEMARK_STOP_GRACE_SECONDS'].map((wanted) =>
    Number(listSettings({}).find(({ name }) => name === wanted)!.value),
  ) as [number, number];
  const byDefault = drain + grace + MARGIN_SECONDS;
  t.equal(numberOf(await read(UNIT), 'TimeoutStopSec'), byDefault);
  t.equal(numberOf(await read('compose.yaml'), 'stop_grace_period'), byDefault);
  const files = await manifests();
  const settings = files.get('base/kustomization.yaml')!;
  const inKubernetes =
    numberOf(settings, 'TAKEMARK_DRAIN_SECONDS') + numberOf(settings, 'TAKEMARK_STOP_GRACE_SECONDS');
  for (const file of ['service/serve.yaml', 'service/consumers.yaml'])
    t.equal(numberOf(files.get(file)!, 'terminationGracePeriodSeconds'), inKubernetes + MARGIN_SECONDS, file);
});

t.test('every pod runs without rights, and only Prometheus reaches its operator listener', async (t) => {
  const files = await manifests();
  const pods = [...files].filter(([, text]) => text.includes('containers:'));
  t.strictSame(pods.map(([file]) => file).sort(), [
    'migration/job.yaml',
    'service/consumers.yaml',
    'service/serve.yaml',
  ]);
  for (const [file, text] of pods)
    for (const line of [
      'automountServiceAccountToken: false',
      'enableServiceLinks: false',
      'runAsNonRoot: true',
      'allowPrivilegeEscalation: false',
      'readOnlyRootFilesystem: true',
      'capabilities: { drop: [ALL] }',
      'secret: { secretName: takemark-secrets, defaultMode: 0440 }',
    ])
      t.ok(text.includes(line), `${file}: ${line}`);
  const policy = files.get('service/network-policy.yaml')!;
  const ingress = policy.slice(policy.indexOf('  ingress:'), policy.indexOf('  egress:'));
  t.strictSame(
    [...ingress.matchAll(/name: (\w+) \}\n {6}ports:\n {8}- \{ protocol: TCP, port: (\d+) \}/g)].map(
      ([, from, port]) => [from, port],
    ),
    [
      ['ingress', '8080'],
      ['monitoring', '8081'],
    ],
  );
  t.notMatch(files.get('service/service.yaml')!, 'operator,');
  t.notMatch(
    files.get('base/kustomization.yaml')!,
    'TAKEMARK_PROCESSES',
    'the processes count themselves while the autoscaler works',
  );
  const images = ['migration', 'service'].map((folder) =>
    /^images:[\s\S]*/m.exec(files.get(`${folder}/kustomization.yaml`)!)![0].trim(),
  );
  t.equal(images[0], images[1], 'the migration is of the version of the service');
});

t.test('Kubernetes takes the manifests', { skip: needs('kubectl', 'kubernetes-validate') }, async (t) => {
  for (const [folder, kinds] of [
    ['migration', ['ConfigMap', 'Job', 'ServiceAccount']],
    [
      'service',
      [
        'ConfigMap',
        'Deployment',
        'Deployment',
        'HorizontalPodAutoscaler',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'PodDisruptionBudget',
        'PodMonitor',
        'Service',
        'ServiceAccount',
      ],
    ],
  ] as const) {
    const { stdout } = await run('kubectl', ['kustomize', join(DEPLOY, MANIFESTS, folder)]);
    t.strictSame([...stdout.matchAll(/^kind: (\w+)/gm)].map(([, kind]) => kind).sort(), kinds);
    // The definition of PodMonitor belongs to the Prometheus operator.
    const own = stdout.split(/^---\n/m).filter((text) => !text.includes('kind: PodMonitor'));
    const directory = t.testdir({ 'all.yaml': own.join('---\n') });
    await t.resolves(run('kubernetes-validate', ['--strict', join(directory, 'all.yaml')]), folder);
  }
});

t.test('the unit of a cluster has the limits and restrictions of the other unit', async (t) => {
  const lines = async (unit: string) =>
    (await read(unit)).split('\n').filter((line) => /^\w+=/.test(line) && !OWN.test(line));
  const expected = await lines(UNIT);
  t.ok(expected.length > 40, `${expected.length} lines`);
  t.strictSame(await lines(CLUSTER_UNIT), expected);
});

t.test('systemd takes the units, and finds them confined', { skip: needs('systemd-analyze') }, async (t) => {
  const directory = t.testdir();
  for (const [unit, instance] of [
    [UNIT, 'takemark.service'],
    [CLUSTER_UNIT, 'takemark@serve.service'],
  ] as const) {
    const file = join(directory, instance);
    await copyFile(join(DEPLOY, unit), file);
    const { stderr } = await run('systemd-analyze', ['verify', file]);
    t.equal(stderr, '', unit);
    await t.resolves(
      run('systemd-analyze', ['security', '--offline=true', `--threshold=${MAX_EXPOSURE}`, file]),
      unit,
    );
  }
});

t.test('Prometheus takes its configuration', { skip: needs('promtool') }, async (t) => {
  const { stdout } = await run('promtool', ['check', 'config', join(DEPLOY, 'prometheus/prometheus.yml')]);
  t.match(stdout, 'is valid prometheus config file syntax');
});
