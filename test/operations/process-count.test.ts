/** The number of processes among which the limits of plans are divided. */
import t from 'tap';
import { ProcessCount } from '../../src/service/background/process-count.js';

/** Returns a count whose looks read these numbers in turn. An error is thrown. */
function countOf(reads: readonly (number | Error)[], fixed?: number) {
  const left = [...reads];
  const changes: [count: number, former: number][] = [];
  const entries = { renewed: 0, left: 0 };
  const count = new ProcessCount({
    ...(fixed === undefined ? {} : { fixed }),
    serving: {
      renew: async () => {
        entries.renewed += 1;
        const next = left.shift()!;
        if (typeof next !== 'number') throw next;
        return next;
      },
      leave: async () => {
        entries.left += 1;
      },
    },
    onChange: (now, former) => changes.push([now, former]),
  });
  /** Looks once for each number, and returns the counts that applied. */
  const look = async (): Promise<readonly number[]> => {
    const values: number[] = [];
    while (left.length > 0) {
      await count.look().catch(() => undefined);
      values.push(count.value);
    }
    return values;
  };
  return { count, look, changes, entries };
}

t.test('a higher count applies at once, and a lower one when six reads have shown it', async (t) => {
  const { look, changes } = countOf([2, 3, 2, 2, 2, 2, 2, 2, 4]);
  t.strictSame(await look(), [2, 3, 3, 3, 3, 3, 3, 2, 4]);
  t.strictSame(changes, [
    [2, 1],
    [3, 2],
    [2, 3],
    [4, 2],
  ]);
});

t.test('a count stays while it cannot be read, and while entries are renewed after an outage', async (t) => {
  const outage = Array.from({ length: 20 }, () => new Error('unavailable'));
  const { look, changes } = countOf([5, ...outage, 1, 3, 5, 5, 5, 5, 5]);
  t.strictSame(new Set(await look()), new Set([5]));
  t.strictSame(changes, [[5, 1]]);
});

t.test('a failed look is reported to its caller', async (t) => {
  const { count } = countOf([new Error('unavailable')]);
  await t.rejects(count.look(), { message: 'unavailable' });
  t.equal(count.value, 1);
});

t.test('a number of the operator applies, and the process is registered all the same', async (t) => {
  const { count, look, changes, entries } = countOf([2, 7], 4);
  t.equal(count.value, 4);
  t.strictSame(await look(), [4, 4]);
  await count.leave();
  t.strictSame([changes, entries], [[], { renewed: 2, left: 1 }]);
});

t.test('a process that owns its store is one, or what the operator has set', async (t) => {
  const onChange = (): void => void t.fail('the count changed');
  const alone = new ProcessCount({ onChange });
  await alone.look();
  await alone.leave();
  t.equal(alone.value, 1);
  t.equal(new ProcessCount({ onChange, fixed: 3 }).value, 3);
});
