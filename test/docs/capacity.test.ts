import { readFile } from 'node:fs/promises';
import t from 'tap';
import { pageOf } from '../../bench/capacity/page.js';
import { planOf } from '../../bench/capacity/plan.js';

const deploy = new URL('../../../deploy/', import.meta.url);
const read = async (name: string) => readFile(new URL(name, deploy), 'utf8');
type Page = Parameters<typeof pageOf>;

void t.test('the page of capacity is what the measurement and the inputs give', async (t) => {
  const measured = JSON.parse(await read('capacity-measured.json')) as Page[0];
  const inputs = JSON.parse(await read('capacity-inputs.json')) as Page[1];
  t.equal(await read('capacity.md'), pageOf(measured, inputs), 'npm run build:capacity');

  const [load] = Object.values(inputs.plans);
  const figureOf = (verifies: number, name: string) =>
    planOf(measured, inputs, { ...load!, verifies }).find((figure) => figure.name === name)!.value;
  const perCall = measured.costs.find(({ name }) => name === 'verify, embedded')!.cpu.cassandra;
  t.ok(
    Math.abs(
      figureOf(1100, 'Cassandra, calls') -
        figureOf(100, 'Cassandra, calls') -
        (1000 * perCall * inputs.assumed.replicas) / 1e6 / inputs.assumed.busyShare.cassandra,
    ) < 1e-6,
    'a thousand verifies more cost a thousand times one, on every replica',
  );
});
