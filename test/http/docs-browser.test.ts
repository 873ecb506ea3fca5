/** The documentation in a browser: on three screens, in two schemes, with search, copy, and the keyboard alone. */
import t, { type Test } from 'tap';
import { Chromium, findChromium } from '../fixtures/chromium.js';
import { needs } from '../fixtures/tools.js';
import { startPartner } from './doubles.js';

const program = await findChromium();
const skip = needs('chromium');
const SCREENS = [390, 820, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((scheme) => [width, scheme] as const),
);
/** Collects what the policy of the page blocks. */
const WATCH = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  (globalThis.blocked ??= []).push(violatedDirective + ' ' + blockedURI))`;
const KEYS = {
  Tab: { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 },
  Enter: { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  ArrowDown: { key: 'ArrowDown', code: 'ArrowDown', windowsVirtualKeyCode: 40 },
  search: { key: 'k', code: 'KeyK', windowsVirtualKeyCode: 75, modifiers: 2 },
} as const;
const FOCUSED = `(() => {
  const { left, top, right, bottom, width } = document.activeElement.getBoundingClientRect();
  return {
    text: (document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim().slice(0, 60),
    seen: width > 0 && left >= 0 && right <= innerWidth && bottom > 0 && top < innerHeight,
  };
})()`;

interface Opened {
  readonly chromium: Chromium;
  readonly url: string;
}

async function open(t: Test): Promise<Opened> {
  const { port, listener } = await startPartner({}, {}, 'beta');
  const chromium = await Chromium.open(program!);
  t.teardown(async () => {
    await chromium.close();
    await listener.close(100);
  });
  await chromium.call('Page.addScriptToEvaluateOnNewDocument', { source: WATCH });
  return { chromium, url: `http://127.0.0.1:${port}/docs` };
}

/** Waits until an expression of the page is true, and returns its value. */
async function until(chromium: Chromium, expression: string): Promise<unknown> {
  return chromium.evaluate(`new Promise((done) => {
    const look = () => { const found = ${expression}; if (found) done(found); else requestAnimationFrame(look); };
    look();
  })`);
}

/** Waits until the heading of a fragment is at the top of the screen, and returns its text. */
async function arrived(chromium: Chromium, fragment: string): Promise<unknown> {
  return until(
    chromium,
    `(() => {
      const place = document.getElementById('takemark/${fragment}');
      const top = place?.getBoundingClientRect().top ?? Infinity;
      if (location.hash !== '#${fragment}' || Math.abs(top) > innerHeight / 2) return;
      return place.querySelector('h2, h3')?.textContent.replace('(Collapsed)', '').trim();
    })()`,
  );
}

async function press(chromium: Chromium, name: keyof typeof KEYS): Promise<void> {
  await chromium.call('Input.dispatchKeyEvent', { type: 'keyDown', ...KEYS[name] });
  await chromium.call('Input.dispatchKeyEvent', { type: 'keyUp', ...KEYS[name] });
}

/** Presses Tab until the focused element has this text. Each element on the way is on the screen. */
async function tabTo(t: Test, chromium: Chromium, text: RegExp): Promise<void> {
  for (let count = 0; count < 80; count += 1) {
    await press(chromium, 'Tab');
    const focused = (await chromium.evaluate(FOCUSED)) as { readonly text: string; readonly seen: boolean };
    if (!focused.seen) t.fail(`${focused.text} has the focus and is not on the screen`);
    if (text.test(focused.text)) return;
  }
  t.fail(`Tab does not reach ${text}`);
}

t.test('the page fits each screen, and asks nothing of another host', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  for (const [width, scheme] of SCREENS) {
    const name = `${width}, ${scheme}`;
    await chromium.show('about:blank', width, scheme);
    await chromium.show(url, width, scheme);
    await until(chromium, `document.getElementById('takemark/tag/verdict-tampered') !== null`);
    const seen = (await chromium.evaluate(`({
      page: document.documentElement.scrollWidth,
      title: document.querySelector('h1').getBoundingClientRect().bottom < innerHeight,
      dark: getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every((part) => part < 64),
      blocked: globalThis.blocked ?? [],
      fields: [...document.querySelectorAll('input')].filter(({ type }) => type !== 'checkbox').length,
    })`)) as Readonly<Record<string, unknown>>;
    t.ok((seen['page'] as number) <= width, `${name}: the page is ${seen['page']} px wide`);
    t.strictSame([seen['title'], seen['dark'], seen['blocked']], [true, scheme === 'dark', []], name);
    t.equal(seen['fields'], 0, `${name}: no field takes a key`);
    const others = chromium
      .complaints(url)
      .filter((complaint) => !complaint.startsWith('{') && !complaint.startsWith(`${url}/`));
    t.strictSame(others, [], `${name}: requests`);
  }
});

t.test('the words are side by side on a wide screen, so that the page is shorter', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  for (const [width, columns] of [
    [820, 1],
    [1440, 2],
  ] as const) {
    await chromium.show('about:blank', width, 'light');
    await chromium.show(url, width, 'light');
    await until(chromium, `document.getElementById('takemark/tag/verdict-tampered') !== null`);
    const lefts = (await chromium.evaluate(
      `[...document.querySelectorAll('section[id^="takemark/tag/verdict-"]')].map((section) => section.getBoundingClientRect().left)`,
    )) as readonly number[];
    t.equal(lefts.length, 6);
    t.equal(new Set(lefts).size, columns, `${width} px`);
  }
});

t.test('a fragment shows its section', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  for (const [short, long, heading] of [
    ['verdict-tampered', 'tag/verdict-tampered', 'tampered'],
    ['error-quota_exceeded', 'tag/error-quota_exceeded', 'quota_exceeded'],
    ['verify', 'tag/verification/verify', /^Verify one/],
  ] as const) {
    await chromium.show('about:blank', 1440, 'light');
    await chromium.show(`${url}#${short}`, 1440, 'light');
    t.match(await arrived(chromium, long), heading, short);
  }
  await chromium.evaluate(`location.hash = '#verdict-unreadable'`);
  t.equal(await arrived(chromium, 'tag/verdict-unreadable'), 'unreadable', 'a link within the page');
});

t.test('the search finds a reason, with the keyboard alone', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  await chromium.show(url, 1440, 'light');
  await until(chromium, `document.querySelector('h1')`);
  await press(chromium, 'search');
  await until(chromium, `document.activeElement.tagName === 'INPUT'`);
  await chromium.call('Input.insertText', { text: 'binding_mismatch' });
  await until(
    chromium,
    `[...document.querySelectorAll('[role=option]')][0]?.textContent.includes('binding_mismatch')`,
  );
  await press(chromium, 'ArrowDown');
  await until(
    chromium,
    `document.activeElement.getAttribute('aria-activedescendant')?.endsWith('binding_mismatch')`,
  );
  await press(chromium, 'Enter');
  t.equal(await arrived(chromium, 'tag/reason-binding_mismatch'), 'binding_mismatch');
});

t.test('the keyboard alone reaches an operation, and copies its sample', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  await chromium.call('Browser.grantPermissions', {
    permissions: ['clipboardReadWrite', 'clipboardSanitizedWrite'],
  });
  await chromium.show(url, 1440, 'light');
  await until(chromium, `document.querySelector('h1')`);
  await tabTo(t, chromium, /^Verification/);
  await press(chromium, 'Enter');
  await tabTo(t, chromium, /^Create a short-lived/);
  await press(chromium, 'Enter');
  t.match(await arrived(chromium, 'tag/verification/createUpload'), /^Create a short-lived/);
  await until(
    chromium,
    `(() => {
      const button = document.getElementById('takemark/tag/verification/createUpload')
        .querySelector('button[class*=copy-button]');
      button?.focus();
      return button !== null && document.activeElement === button;
    })()`,
  );
  await press(chromium, 'Enter');
  const copied = await until(chromium, `navigator.clipboard.readText()`);
  t.match(copied, /curl .*--request POST/);
  t.match(copied, '/v1/uploads');
});
