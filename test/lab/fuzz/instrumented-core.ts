/** The WASM core with a counter in each branch and loop, because V8 does not count them. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Coverage, magnitude } from './coverage.js';

const ROOT = new URL('../../../../', import.meta.url).pathname;
/** The line that begins a branch or a loop, with its label and type if it has them. */
const BRANCH = /^ *(?:if|else|loop)(?: \$\S+)?(?: \(result \w+\))?$/gm;
const MOST_BRANCHES = 16_384;

export interface InstrumentedCore {
  readonly module: WebAssembly.Module;
  readonly branches: number;
  /** The number of bytes for the counters in the core's memory, from `countersAt`. */
  readonly counterBytes: number;
}

/**
 * Builds the same sources without optimization, so that branches stay branches.
 * @param countersAt address of the counters in the memory of the instances
 */
export async function buildInstrumentedCore(countersAt: number): Promise<InstrumentedCore> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-core-'));
  const run = promisify(execFile);
  try {
    const [plain, counting, binary] = ['plain.wat', 'counting.wat', 'counting.wasm'].map((name) =>
      join(directory, name),
    ) as [string, string, string];
    const { options } = JSON.parse(await readFile(join(ROOT, 'asconfig.json'), 'utf8')) as {
      options: Record<string, unknown>;
    };
    const config = join(directory, 'asconfig.json');
    await writeFile(
      config,
      JSON.stringify({
        options,
        targets: { counting: { textFile: plain, optimizeLevel: 0, shrinkLevel: 0, noAssert: true } },
      }),
    );
    await run(
      process.execPath,
      [
        join(ROOT, 'node_modules/assemblyscript/bin/asc.js'),
        'assembly/index.ts',
        '--config',
        config,
        '--target',
        'counting',
      ],
      { cwd: ROOT },
    );
    let branches = 0;
    const text = (await readFile(plain, 'utf8')).replace(BRANCH, (line) => {
      const address = `i32.const ${countersAt + 4 * branches++}`;
      return [line, address, address, 'i32.load', 'i32.const 1', 'i32.add', 'i32.store'].join('\n');
    });
    if (branches < 100 || branches > MOST_BRANCHES)
      throw new Error(`${branches} branches were found in the core: its text has another form`);
    await writeFile(counting, text);
    await run(join(ROOT, 'node_modules/binaryen/bin/wasm-as'), [counting, '-o', binary, '--all-features'], {
      cwd: ROOT,
    });
    return {
      module: new WebAssembly.Module(new Uint8Array(await readFile(binary))),
      branches,
      counterBytes: 4 * branches,
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The values of the counters, in the form of the coverage of blocks. */
export class BranchCoverage implements Coverage {
  readonly #counters: Uint32Array;

  constructor(memory: WebAssembly.Memory, countersAt: number, { branches }: InstrumentedCore) {
    this.#counters = new Uint32Array(memory.buffer, countersAt, branches);
  }

  take(): ReadonlySet<number> {
    const touched = new Set<number>();
    this.#counters.forEach((count, branch) => {
      if (count > 0) touched.add(branch * 64 + magnitude(count));
    });
    this.#counters.fill(0);
    return touched;
  }

  close(): void {}
}
