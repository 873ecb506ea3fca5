import { BuiltPage } from '../built-page.js';
import type { ShownDocument } from './document.js';
import type { DocsFiles } from './files.js';

/**
 * Only scripts of this listener run, and they connect to nothing. The library writes style elements, so inline
 * styles are allowed.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Returns the page that shows the document with the library. Without scripts the page links to `/docs.md`. */
export function docsPage(document: ShownDocument, files: DocsFiles): BuiltPage {
  const title = `${document.info.title} ${document.info.version}`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
</head>
<body>
<noscript><p>This page needs scripts. <a href="/docs.md">The same text without scripts</a>.</p></noscript>
<div id="reference"></div>
<script type="application/json" id="document">${JSON.stringify(document).replaceAll('<', '\\u003c')}</script>
<script src="/docs/${files.reference.name}"></script>
<script src="/docs/${files.start.name}"></script>
</body>
</html>
`;
  return BuiltPage.of('text/html; charset=utf-8', html, { 'Content-Security-Policy': POLICY });
}
