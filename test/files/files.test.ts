import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createFile, replaceFile } from '../../src/core/files/durable.js';
import { type Line, LineLog } from '../../src/core/files/line-log.js';
import { makeDirectory } from '../../src/core/files/make-directory.js';

t.test('a file is replaced as a whole, for its owner alone, and nothing is left beside it', async (t) => {
  const directory = t.testdir({ a: 'former' });
  const path = join(directory, 'a');
  await replaceFile(path, 'new');
  t.equal(await readFile(path, 'utf8'), 'new');
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.strictSame(await readdir(directory), ['a']);
});

t.test('content that fails half-way leaves the former file', async (t) => {
  const directory = t.testdir({ a: 'former' });
  const broken = async function* () {
    yield Buffer.from('half');
    throw new Error('source broke');
  };
  await t.rejects(replaceFile(join(directory, 'a'), broken()), { message: 'source broke' });
  t.equal(await readFile(join(directory, 'a'), 'utf8'), 'former');
  t.strictSame(await readdir(directory), ['a']);
});

t.test('of many that make one file at once, one makes it', async (t) => {
  const directory = t.testdir({});
  const path = join(directory, 'once');
  const made = await Promise.all([...'abcdefgh'].map((text) => createFile(path, text)));
  t.equal(made.filter(Boolean).length, 1);
  t.equal(await readFile(path, 'utf8'), [...'abcdefgh'][made.indexOf(true)]);
  t.equal(await createFile(path, 'later'), false);
  t.strictSame(await readdir(directory), ['once']);
});

async function linesOf(log: LineLog): Promise<readonly (string | undefined)[]> {
  const lines: (string | undefined)[] = [];
  for await (const { text } of log.lines()) lines.push(text?.toString());
  return lines;
}

t.test('a last line without its end is cut off, and the next one follows the whole ones', async (t) => {
  const directory = t.testdir({ log: 'one\ntwo\ntor' });
  const path = join(directory, 'log');
  const log = await LineLog.open({ path });
  t.equal(await readFile(path, 'utf8'), 'one\ntwo\n');
  await log.append('three\n');
  await log.close();
  t.equal(await readFile(path, 'utf8'), 'one\ntwo\nthree\n');
});

t.test('every whole line of any length is shown with its place', async (t) => {
  const texts = ['', 'é', 'x'.repeat(262_143), 'y'.repeat(700_000), 'last'];
  const directory = t.testdir({ log: `${texts.join('\n')}\n` });
  const seen: Line[] = [];
  const log = await LineLog.open({
    path: join(directory, 'log'),
    longestLine: 500_000,
    each: (line) => seen.push(line) > 0,
  });
  t.strictSame(
    seen.map(({ text }) => text?.toString()),
    texts.map((text) => (text.length > 500_000 ? undefined : text)),
  );
  t.equal((await log.lineAt(seen[4]!.start))?.toString(), 'last');
  t.equal(seen[4]!.end, log.length);
  await log.close();
});

t.test('a log ends before the first line that its owner does not take', async (t) => {
  const directory = t.testdir({ log: 'good\nbad\nlater\n' });
  const log = await LineLog.open({
    path: join(directory, 'log'),
    each: ({ text }) => text?.toString() !== 'bad',
  });
  t.strictSame(await linesOf(log), ['good']);
  await log.close();
});

t.test('a log whose owner throws stays as it is', async (t) => {
  const directory = t.testdir({ log: 'strange\ntor' });
  const path = join(directory, 'log');
  const refuse = () => {
    throw new Error('not ours');
  };
  await t.rejects(LineLog.open({ path, each: refuse }), { message: 'not ours' });
  t.equal(await readFile(path, 'utf8'), 'strange\ntor');
});

t.test('other lines take the place of all, and appends go to them', async (t) => {
  const directory = t.testdir({ log: 'one\ntwo\n' });
  const path = join(directory, 'log');
  const log = await LineLog.open({ path });
  await log.replace('both\n');
  await log.append('three\n');
  t.strictSame(await linesOf(log), ['both', 'three']);
  t.equal(await readFile(path, 'utf8'), 'both\nthree\n');
  await log.close();
});

t.test('a place where nothing can be written is an error of the platform', async (t) => {
  const directory = t.testdir({});
  await mkdir(join(directory, 'taken'));
  await t.rejects(replaceFile(join(directory, 'taken'), 'x'), { code: 'EISDIR' });
  await writeFile(join(directory, 'file'), '');
  await t.rejects(createFile(join(directory, 'file', 'below'), 'x'), { code: 'ENOTDIR' });
  t.strictSame(await readdir(directory), ['file', 'taken']);
});

t.test('a directory is made with those above it, for its owner alone', async (t) => {
  const directory = t.testdir({ a: 'a file' });
  const path = join(directory, 'b', 'c', 'd');
  await Promise.all([makeDirectory(path), makeDirectory(path), makeDirectory(join(directory, 'b', 'e'))]);
  await makeDirectory(path);
  t.strictSame((await readdir(join(directory, 'b'))).sort(), ['c', 'e']);
  for (const made of [path, join(directory, 'b')]) t.equal((await stat(made)).mode & 0o777, 0o700);
  await t.rejects(makeDirectory(join(directory, 'a')), { code: 'EEXIST' });
  await t.rejects(makeDirectory(join(directory, 'a', 'b')), { code: 'ENOTDIR' });
  if (process.platform === 'linux')
    await t.rejects(makeDirectory('/proc/none/below'), { code: 'ENOENT' }, 'and it ends');
});

t.test('a log writes nothing over the lines of another process', async (t) => {
  const path = join(t.testdir(), 'log');
  const one = await LineLog.open({ path });
  const other = await LineLog.open({ path });
  await one.append('of one\n');
  await t.rejects(other.append('of the other\n'), {
    code: 'WRITTEN_BY_ANOTHER_PROCESS',
    message: /^log is written by another/,
  });
  await one.append('of one again\n');
  t.equal(await readFile(path, 'utf8'), 'of one\nof one again\n');
  await one.close();
  await other.close();
});
