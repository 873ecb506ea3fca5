/* global Scalar, document, location, history, addEventListener */
// Starts the library on the document of this page. Runs in a browser, after the library.
const content = JSON.parse(document.getElementById('document').textContent);
const NAME = 'takemark';
const slug = (name) => name.toLowerCase().replaceAll(' ', '-');

/** The library's fragments by the short fragments of this page, such as `verdict-tampered` and `verify`. */
const FRAGMENTS = new Map([['quick-start', 'description/quick-start']]);
for (const { name } of content.tags) FRAGMENTS.set(name, `tag/${slug(name)}`);
for (const name of Object.keys(content.components.schemas)) FRAGMENTS.set(`schema-${name}`, `model/${name}`);
for (const methods of Object.values(content.paths))
  for (const { operationId, tags } of Object.values(methods))
    FRAGMENTS.set(operationId, `tag/${slug(tags[0])}/${operationId}`);

/** Replaces a short fragment by the library's. */
function expand() {
  const long = FRAGMENTS.get(location.hash.slice(1));
  if (long === undefined) return false;
  history.replaceState(history.state, '', `#${long}`);
  return true;
}

/** The sections of the reference, which have no operations. */
const WORDS = content['x-tagGroups'].slice(1).flatMap(({ tags }) => tags);
const KINDS = [...new Set(WORDS.map((name) => name.slice(0, name.indexOf('-') + 1)))];
const WORD_SECTION = `:is(${KINDS.map((kind) => `[id^="${NAME}/tag/${kind}"]`).join(', ')})`;
/**
 * Long words break, nothing widens the page, and the page names no other site. The sections of words are short, and on a
 * wide screen two are side by side, because they have no samples.
 */
const STYLE = `
.section-header, .section-header-label { min-width: 0; max-width: 100%; overflow-wrap: anywhere; white-space: normal; }
.references-rendered { overflow-x: clip; }
.markdown-summary { line-height: 1.6; }
.markdown pre, .markdown table { max-width: 100%; overflow-x: auto; }
${WORD_SECTION}.section { padding-block: 24px; }
.tag-section-container:has(> ${WORD_SECTION}) { padding-block: 0; }
@media (min-width: 1200px) {
  .narrow-references-container { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .narrow-references-container > * { grid-column: 1 / -1; }
  .narrow-references-container > .tag-section-container:has(> ${WORD_SECTION}) { grid-column: auto; }
  ${WORD_SECTION} :is(.section-columns, .section-header-wrapper) { display: block; }
  ${WORD_SECTION} .section-header { width: 100%; max-width: 100%; }
}
a[href*="scalar.com"] { display: none; }
`;

expand();
addEventListener('hashchange', () => {
  if (expand()) dispatchEvent(new PopStateEvent('popstate', { state: history.state }));
});

Scalar.createApiReference('#reference', {
  content,
  slug: NAME,
  // No key enters a browser, so the page has no request runner.
  hideTestRequestButton: true,
  hideClientButton: true,
  hiddenClients: true,
  documentDownloadType: 'none',
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  telemetry: false,
  // Nothing is loaded from another host.
  withDefaultFonts: false,
  customCss: STYLE,
  operationTitleSource: 'summary',
  orderSchemaPropertiesBy: 'preserve',
  orderRequiredPropertiesFirst: false,
  generateHeadingSlug: ({ slug: heading }) => `${NAME}/description/${heading}`,
  generateTagSlug: ({ name }) => slug(name),
  generateOperationSlug: ({ operationId }) => operationId,
  generateModelSlug: ({ name }) => name,
});
