import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { BuiltPage } from '../built-page.js';

/** The directory that `npm run build:docs` writes. */
const DIRECTORY = new URL('../../../../../docs/', import.meta.url);

export interface DocsFile {
  /** The name of the file below `/docs/`. It contains a digest of the content. */
  readonly name: string;
  readonly page: BuiltPage;
}

/** The scripts of the page at `/docs`. */
export interface DocsFiles {
  /** The library that renders the document. */
  readonly reference: DocsFile;
  /** The script that starts the library. */
  readonly start: DocsFile;
}

/** Reads the scripts of the page, which were compressed when the project was built. */
export function readDocsFiles(): DocsFiles {
  const names = readdirSync(DIRECTORY);
  const fileOf = (kind: keyof DocsFiles): DocsFile => {
    const compressed = names.find((name) => name.startsWith(`${kind}-`) && name.endsWith('.js.gz'));
    if (compressed === undefined) throw new Error(`no script ${kind} in ${DIRECTORY.pathname}`);
    const name = compressed.slice(0, -'.gz'.length);
    const gzip = readFileSync(new URL(compressed, DIRECTORY));
    const br = readFileSync(new URL(`${name}.br`, DIRECTORY));
    const forms = { plain: () => gunzipSync(gzip), gzip, br };
    return { name, page: new BuiltPage('text/javascript; charset=utf-8', forms, {}, 'immutable') };
  };
  return { reference: fileOf('reference'), start: fileOf('start') };
}
