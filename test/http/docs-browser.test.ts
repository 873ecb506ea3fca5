/** The documentation's page in a browser: at three widths, in two schemes, and with the keyboard alone. */
import t from 'tap';
import { Chromium, findChromium } from '../fixtures/chromium.js';
import { needs } from '../fixtures/tools.js';
import { startPartner } from './doubles.js';

const program = await findChromium();
const skip = needs('chromium');
const SCREENS = [390, 820, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((scheme) => [width, scheme] as const),
);
/** Contrast of text with its ground, WCAG 2.2 AA. */
const LEAST_CONTRAST = 4.5;

/** Texts of the page whose colour is too near the ground's, with their contrast; as a function of the page. */
const FAINT_TEXTS = `(() => {
  const partsOf = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = partsOf(colour).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const ground = getComputedStyle(at).backgroundColor;
      if ((partsOf(ground)[3] ?? 1) === 1) return ground;
    }
    return 'rgb(255, 255, 255)';
  };
  const faint = new Map();
  for (const element of document.body.querySelectorAll('*')) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '')) continue;
    const [a, b] = [getComputedStyle(element).color, groundOf(element)];
    const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
    const contrast = (bright + 0.05) / (dark + 0.05);
    if (contrast < ${LEAST_CONTRAST}) faint.set(a + ' on ' + b, element.outerHTML.slice(0, 80) + ' ' + contrast);
  }
  return [...faint].map((entry) => entry.join(': '));
})()`;

/** Element that holds the keyboard: its tag, target, place, and whether an outline tells of it. */
const FOCUSED = `(() => {
  const { tagName, hash, outerHTML } = document.activeElement;
  const { left, top, right, bottom, width } = document.activeElement.getBoundingClientRect();
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return {
    tag: tagName,
    hash: hash ?? '',
    html: outerHTML.slice(0, 80),
    seen: width > 0 && left >= 0 && right <= innerWidth && bottom > 0 && top < innerHeight,
    outlined: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
  };
})()`;

interface Focused {
  readonly tag: string;
  readonly hash: string;
  readonly html: string;
  readonly seen: boolean;
  readonly outlined: boolean;
}

async function open(t: {
  teardown(work: () => unknown): void;
}): Promise<{ chromium: Chromium; url: string }> {
  const { port, listener } = await startPartner();
  const chromium = await Chromium.open(program!);
  t.teardown(async () => {
    await chromium.close();
    await listener.close(100);
  });
  return { chromium, url: `http://127.0.0.1:${port}/docs` };
}

async function press(chromium: Chromium, key: 'Tab' | 'Enter'): Promise<Focused> {
  const code = { Tab: 9, Enter: 13 }[key];
  const event = { key, code: key, windowsVirtualKeyCode: code, ...(key === 'Enter' && { text: '\r' }) };
  await chromium.call('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
  await chromium.call('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  return (await chromium.evaluate(FOCUSED)) as Focused;
}

t.test('on every screen all of it fits, is told apart and begins with its title', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  for (const [width, scheme] of SCREENS) {
    const name = `${width}, ${scheme}`;
    await chromium.show(url, width, scheme);
    const seen = (await chromium.evaluate(`({
      screen: innerWidth,
      page: document.documentElement.scrollWidth,
      title: document.querySelector('h1').getBoundingClientRect().bottom / innerHeight,
      tables: document.querySelectorAll('.wide').length,
      cut: [...document.querySelectorAll('.wide')].filter((table) => table.scrollWidth > table.clientWidth)
        .map((table) => table.closest('[id]').id + ': ' + (table.scrollWidth - table.clientWidth) + ' px'),
      ground: getComputedStyle(document.body).backgroundColor,
    })`)) as {
      readonly screen: number;
      readonly page: number;
      readonly title: number;
      readonly tables: number;
      readonly cut: readonly string[];
      readonly ground: string;
    };
    t.equal(seen.screen, width, name);
    t.ok(seen.page <= width, `${name}: the page is ${seen.page} px wide`);
    t.ok(seen.title < 1, `${name}: the title is on the first screen`);
    t.ok(seen.tables > 100, `${name}: ${seen.tables} tables`);
    t.strictSame(seen.cut, [], `${name}: no table is cut`);
    t.equal(seen.ground, scheme === 'light' ? 'rgb(255, 255, 255)' : 'rgb(20, 24, 27)', name);
    t.strictSame(await chromium.evaluate(FAINT_TEXTS), [], `${name}: contrast`);
    t.strictSame(chromium.complaints(url), [], `${name}: complaints, and requests beside the page`);
  }
});

t.test('a text that is faint is found', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  await chromium.show(url, 1440, 'light');
  await chromium.evaluate(`document.querySelector('h1').style.color = '#aaa'`);
  t.match(await chromium.evaluate(FAINT_TEXTS), [/^rgb\(170, 170, 170\) on rgb\(255, 255, 255\): <h1/]);
});

t.test('with the keyboard alone every place is reached, seen and opened', { skip }, async (t) => {
  const { chromium, url } = await open(t);
  await chromium.show(url, 1440, 'light');
  t.equal(
    await chromium.evaluate(`[...document.querySelectorAll('a')].filter(({ hash, href }) =>
      hash !== '' && href.startsWith(location.href) && document.getElementById(hash.slice(1)) === null).length`),
    0,
    'each link within the page leads somewhere',
  );
  const skipping = await press(chromium, 'Tab');
  t.match(
    skipping,
    { hash: '#top', seen: true, outlined: true },
    'first the way past the list of operations',
  );
  t.match(await press(chromium, 'Enter'), { tag: 'MAIN' });
  t.match(await press(chromium, 'Tab'), { tag: 'A', html: /openapi\.json/, seen: true, outlined: true });

  await chromium.show(url, 1440, 'light');
  const links = (await chromium.evaluate(`document.querySelectorAll('nav a').length`)) as number;
  await press(chromium, 'Tab');
  const reached: Focused[] = [];
  for (let at = 0; at < links; at += 1) reached.push(await press(chromium, 'Tab'));
  t.ok(links > 20, `${links} links`);
  t.strictSame(
    reached.filter(({ tag, seen, outlined }) => tag !== 'A' || !seen || !outlined),
    [],
    'each is seen and outlined when it holds the keyboard',
  );
  t.equal(new Set(reached.map(({ hash }) => hash)).size, links, 'one after the other');

  await chromium.evaluate(`document.querySelector('nav a[href="#verify"]').focus()`);
  await press(chromium, 'Enter');
  t.equal(await chromium.evaluate('location.hash'), '#verify');
  let focused = await press(chromium, 'Tab');
  for (let count = 0; count < 40 && focused.tag !== 'SUMMARY'; count += 1)
    focused = await press(chromium, 'Tab');
  t.match(focused, { tag: 'SUMMARY', seen: true, outlined: true }, 'its errors');
  const isOpen = `document.activeElement.parentElement.open`;
  t.equal(await chromium.evaluate(isOpen), false);
  await press(chromium, 'Enter');
  t.equal(await chromium.evaluate(isOpen), true, 'open with the keyboard');
  t.equal(
    await chromium.evaluate(`document.activeElement.closest('article').id`),
    'verify',
    'of the operation that was gone to',
  );
});
