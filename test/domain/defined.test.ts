import t from 'tap';
import { defined } from '../../src/core/domain/defined.js';

interface Label {
  name: string;
  colour?: string;
}

t.test('an undefined member is absent from the result', (t) => {
  const colour: string | undefined = undefined;
  const label: Label = defined({ name: 'a', colour });
  t.notOk('colour' in label);
  t.strictSame(Object.keys(label), ['name']);
  t.end();
});

t.test('a member with a value stays, an empty or false one too', (t) => {
  const members = { name: '', count: 0, on: false, none: null };
  t.strictSame(defined(members), members);
  t.end();
});

t.test('the members given are left as they are', (t) => {
  const members = { name: 'a', colour: undefined };
  defined(members);
  t.ok('colour' in members);
  t.end();
});

t.test('the type makes a member that may be undefined optional, and only that one', (t) => {
  const colour = 'red' as string | undefined;
  const label: Label = defined({ name: 'a', colour });
  // @ts-expect-error: the result can omit the member, so it does not fit where the member is required
  const whole: Required<Label> = defined({ name: 'a', colour });
  t.strictSame(label, whole);
  t.end();
});
