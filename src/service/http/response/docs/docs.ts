import type { OpenApiDocument } from '../../../contract/openapi.js';
import type { BuiltPage } from '../built-page.js';
import { shownDocument } from './document.js';
import { readDocsFiles } from './files.js';
import { docsIndex, docsText } from './markdown.js';
import { docsPage } from './page.js';

/** The documentation of one listener. Each page is built at its first request. */
export interface Docs {
  readonly page: () => BuiltPage;
  readonly text: () => BuiltPage;
  readonly index: () => BuiltPage;
  /** Returns a script of the page, by its name below `/docs/`. */
  readonly script: (name: string) => BuiltPage | undefined;
}

/** Returns the documentation of a document, and reads the scripts of its page. */
export function readDocs(document: OpenApiDocument): Docs {
  const files = readDocsFiles();
  const shown = shownDocument(document);
  return {
    page: once(() => docsPage(shown, files)),
    text: once(() => docsText(shown)),
    index: once(() => docsIndex(shown)),
    script: (name) => [files.reference, files.start].find((file) => file.name === name)?.page,
  };
}

function once<Value>(build: () => Value): () => Value {
  let built: Value | undefined;
  return () => (built ??= build());
}
