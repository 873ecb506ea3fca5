/**
 * Writes the scripts of the page at `/docs` to `dist/docs/`, compressed, unless they are newer than their sources. Run
 * by `npm run build:docs`.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const OUT = new URL('../../dist/docs/', import.meta.url).pathname;
const here = new URL('./', import.meta.url).pathname;
const library = new URL('../../node_modules/@scalar/fastify-api-reference/', import.meta.url).pathname;
const SOURCES = {
  reference: join(library, 'dist/js/standalone.js'),
  start: join(here, 'start.js'),
};
/**
 * The library calls `Function` to learn whether the page allows it. The page does not, and the call would be reported as
 * a violation of its policy.
 */
const PROBE = 'try{return new Function(""),!0}catch(e){return!1}';
const withoutProbe = (source) => {
  const parts = source.split(PROBE);
  if (parts.length !== 2)
    throw new Error('the library has another probe: see PROBE in deploy/docs/build.mjs');
  return parts.join('return!1');
};
// An installation that writes nothing anew has the same library.
const madeOf = [...Object.values(SOURCES), join(here, 'build.mjs'), join(here, '../../package-lock.json')];
const changed = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

mkdirSync(OUT, { recursive: true });
const written = readdirSync(OUT).map((name) => join(OUT, name));
if (written.length < 4 || Math.min(...written.map(changed)) < Math.max(...madeOf.map(changed))) {
  rmSync(OUT, { recursive: true });
  mkdirSync(OUT);
  for (const [kind, path] of Object.entries(SOURCES)) {
    const source = readFileSync(path, 'utf8');
    const bytes = Buffer.from(kind === 'reference' ? withoutProbe(source) : source);
    const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
    const file = join(OUT, `${kind}-${digest}.js`);
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
    writeFileSync(
      `${file}.br`,
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    );
  }
}
