/** Tests the second rendering of exports of the real Ardour: one export as it was, and one that was changed. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { readWaveLayout } from '../../src/agents/ardour/audio-file.js';
import { rerenderArdour } from '../../src/agents/ardour/rerender.js';
import { again } from '../fixtures/again.js';
import { needs } from '../fixtures/tools.js';
import { reportOf } from './ardour/report.js';
import { follow, makeHome, runLua } from './ardour/studio.js';

/** Changes the highest byte of a sample amid the file. */
async function changeSample(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    const layout = await readWaveLayout(file);
    if (layout === undefined) throw new Error('no WAVE');
    const middle = (layout.dataStart + (await file.stat()).size) / 2;
    const frame = Math.floor((middle - layout.dataStart) / layout.frameBytes);
    const at = layout.dataStart + frame * layout.frameBytes + layout.bits / 8 - 1;
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, at);
    byte[0] = byte[0]! ^ 1;
    await file.write(byte, 0, 1, at);
  } finally {
    await file.close();
  }
}

/** The error for a run of Ardour that a signal ended. */
class Aborted extends Error {}

for (const [change, rerender, name] of [
  [undefined, 'matched', 'an export of the whole session is what the session renders'],
  [changeSample, 'differed', 'an export of which one sample was changed is not'],
] as const)
  t.test(name, { skip: needs('ardour7-lua') }, async (t) => {
    const scratch = t.testdir({ home: {} });
    const home = join(scratch, 'home');
    await makeHome(home);
    let runs = 0;
    const { trace, events } = await again(
      async () => {
        runs += 1;
        const directory = join(scratch, `session-${runs}`);
        const trace = join(scratch, `take-${runs}.trace`);
        const followed = await follow(
          trace,
          { directory, countsDummy: true, rerender: rerenderArdour },
          async () => {
            const { code, output } = await runLua(home, 'export.lua', [directory, 'session']);
            if (code === null) throw new Aborted(output.slice(-200));
            t.strictSame(code, 0, output);
            await change?.(join(directory, 'export/mix.wav'));
          },
        );
        return { trace, ...followed };
      },
      (error) => error instanceof Aborted,
    );
    const exports = events.flatMap((event) => (event.kind === 'export.finished' ? [event] : []));
    t.match(exports.at(-1), { rerender: 'not_tried', rate: 48_000, channels: 2 });
    const rendered = events.flatMap((event) => (event.kind === 'export.rendered' ? [event] : []));
    t.match(rendered, [{ fileSha256: exports.at(-1)?.fileSha256, outcome: rerender }]);
    if (rerender === 'differed')
      t.equal(rendered[0]?.equalWindows, rendered[0]!.windows! - 1, 'all but the window of the sample');
    const { session, values } = await reportOf(trace);
    t.match(session.exports.at(-1), { rerender });
    t.strictSame(values('export_rerender_differs').length, rerender === 'differed' ? 1 : 0);
  });
