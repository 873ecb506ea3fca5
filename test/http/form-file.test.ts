import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import type { DomainError } from '../../src/core/domain/errors.js';
import { FormPermits } from '../../src/service/http/body/form-permits.js';
import { issuingBody } from '../../src/service/http/body/issuing-body.js';
import { receiveForm } from '../../src/service/http/body/upload-form.js';
import { ByteBudget } from '../../src/service/http/byte-budget.js';
import { DEFAULT_LIMITS, type Exchange, MessageEnd } from '../../src/service/http/exchange.js';
import { seeded } from '../fixtures/service.js';
import { noise } from '../fixtures/wav.js';
import { FIELDS } from './doubles.js';
import { type FormPart, form } from './raw-client.js';

const BOUNDARY = 'XB';
const DELIMITER = `\r\n--${BOUNDARY}`;
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const FIELD_PARTS: FormPart[] = Object.entries(FIELDS).map(([name, body]) => ({ name, body }));
const permits = new FormPermits({
  max: 16,
  maxOfAddress: 16,
  state: 'wait',
  displacedByAny: 'form_oldest',
  displacedByAddress: 'form_of_address',
  observer: { displaced: () => t.fail('no form gives way here') },
});

/** The bytes of a form's file as hexadecimal digits, or the reason of the refusal. */
type Outcome = string;

/** Returns an exchange whose request has the pieces as its body. */
function exchangeOf(pieces: readonly Buffer[]): Exchange {
  const request = Object.assign(new Readable({ read: () => {} }), {
    headers: { 'content-type': TYPE },
    complete: true,
  });
  for (const piece of pieces) request.push(piece);
  request.push(null);
  return {
    request,
    limits: DEFAULT_LIMITS,
    address: '127.0.0.1',
    gone: new AbortController().signal,
    message: new MessageEnd(undefined as never, false, false),
    log: { bytesIn: 0 },
    lease: new ByteBudget(1_000_000_000).lease('127.0.0.1'),
  } as unknown as Exchange;
}

/** Sends a form in pieces through the partners' reader. Its receiver is sometimes full. */
async function received(pieces: readonly Buffer[], random: () => number): Promise<Outcome> {
  const exchange = exchangeOf(pieces);
  const taken: Buffer[] = [];
  let busy = false;
  try {
    await receiveForm(exchange, { unproven: permits, stalled: permits }, async () => {
      if (random() < 0.5) await turn();
      return {
        signal: new AbortController().signal,
        write(chunk) {
          if (busy) throw new Error('one write at a time');
          taken.push(Buffer.from(chunk));
          if (random() < 0.6) return undefined;
          busy = true;
          return turn().then(() => {
            busy = false;
          });
        },
        finish: async () => {
          if (busy) throw new Error('ended before the last write has settled');
          return { uploadId: 'upl_1', bytes: 0, sha256: '' };
        },
        abort: () => {},
      };
    });
    return Buffer.concat(taken).toString('hex');
  } catch (error) {
    return (error as DomainError).reason ?? String(error);
  } finally {
    exchange.request.destroy();
  }
}

/** Sends a form in pieces through the operator's reader. */
async function issued(pieces: readonly Buffer[]): Promise<Outcome> {
  const exchange = exchangeOf(pieces);
  const bounds = { audioBytes: 1_000_000, traceBytes: 0, maxBytes: 2_000_000, fields: FIELDS };
  try {
    const taken: Uint8Array[] = [];
    for await (const chunk of (await issuingBody(exchange, bounds)).audio) taken.push(chunk);
    return Buffer.concat(taken).toString('hex');
  } catch (error) {
    return (error as DomainError).reason ?? String(error);
  } finally {
    exchange.request.destroy();
  }
}

/** Reads a whole form at once, by the grammar of RFC 2046, 5.1.1. */
function outcomeOf(body: Buffer): Outcome {
  const [preamble, ...segments] = `\r\n${body.toString('latin1')}`.split(DELIMITER);
  if (preamble!.includes(DELIMITER.trim())) return 'form_malformed';
  let file: string | undefined;
  for (const [i, segment] of segments.entries()) {
    const last = i === segments.length - 1;
    if (segment.startsWith('--')) {
      const closed = last && /^--[ \t]*(\r\n[\s\S]*)?$/.test(segment);
      if (!closed || segment.slice(2).includes(DELIMITER.trim())) return 'form_malformed';
      return file === undefined ? 'file_missing' : Buffer.from(file, 'latin1').toString('hex');
    }
    // The line end after a boundary may belong to the next boundary.
    if (!/^[ \t]*\r\n/.test(segment) && (last || !/^[ \t]*$/.test(segment))) return 'form_malformed';
    if (file !== undefined) return 'file_not_last';
    const part = segment.slice(segment.indexOf('\r\n') + 2);
    const end = part.indexOf('\r\n\r\n');
    if (end <= 0) return 'form_malformed';
    if (part.slice(0, end).includes('filename=')) file = part.slice(end + 4);
  }
  return 'form_malformed';
}

function fileStart(body: Buffer): number {
  return body.indexOf('\r\n\r\n', body.indexOf('filename=')) + 4;
}

function split(body: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places, body.length];
  return ends.map((end, i) => body.subarray(i === 0 ? 0 : ends[i - 1], end));
}

const CONTENTS = [
  '',
  'R',
  '\r',
  '\r\n',
  '\r\n--',
  '\r\r\n-\r\n--\r',
  '\r\n--X',
  '\r\n--X\r\n--X\r\n--\r\n--Y',
  '--XB\r\n',
  '\n--XB--',
  'RIFF\r\n--xb--\r\n-XB\r\n--XA',
];
const PART = 'Content-Disposition: form-data; name=';
const ENDINGS = [
  `${DELIMITER}--\r\n`,
  `${DELIMITER}--`,
  `${DELIMITER}--\r\n\r\n`,
  `${DELIMITER}-- \t`,
  `${DELIMITER}--\t\r\nmore\r\n--X\r\n`,
  `${DELIMITER}--\r\n--XB--\r\n`,
  `${DELIMITER}--\r\nmore --XB`,
  `${DELIMITER} \t\r\n${PART}"a"\r\n\r\nb${DELIMITER}--\r\n`,
  `${DELIMITER}--\r`,
  `${DELIMITER}--x`,
  `${DELIMITER}-`,
  DELIMITER,
  `${DELIMITER}x${DELIMITER}--\r\n`,
  `${DELIMITER}\rx${DELIMITER}--\r\n`,
  `${DELIMITER}${DELIMITER}--\r\n`,
  `${DELIMITER}--${DELIMITER}--\r\n`,
  `${DELIMITER}\r\n${PART}"a"\r\n\r\nb${DELIMITER}--\r\n`,
  `${DELIMITER}\r\n${PART}"file"; filename="b.wav"\r\n\r\nb${DELIMITER}--\r\n`,
  `${DELIMITER}\r\nX${DELIMITER}--\r\n`,
  `${DELIMITER}\r\n${DELIMITER}--\r\n`,
  '\r\n--X',
  '\r\n',
  '',
];

/** What may precede the first boundary, and what may follow a boundary. */
const OPENINGS = ['', '\r\n', 'hello\r\n', '-\r\n--X\r\n\r\n', 'hello\n', 'hello', ' ', '--XB', '--XB\r\n'];
const PADDINGS = ['', ' ', '\t \t', ' x', '\r'];

t.test('a form is read as RFC 2046 says when it is cut anywhere', async (t) => {
  const random = seeded(20);
  const outcomes = new Set<string>();
  let forms = 0;
  const check = async (body: Buffer, from: number, to: number) => {
    const expected = outcomeOf(body);
    outcomes.add(/^[a-z]+_/.test(expected) ? expected : 'file');
    const places = Array.from({ length: to - from }, (_, i) => [from + i]);
    const ways = [[], ...places, ...Array.from({ length: 10 }, () => somePlaces(to, from, random))];
    for (const way of ways) {
      forms += 1;
      const outcome = await received(split(body, way), random);
      if (outcome !== expected)
        t.equal(outcome, expected, `${JSON.stringify(body.toString('latin1'))}, cut at ${way}`);
    }
    for (const way of ways.slice(-3)) {
      const outcome = await issued(split(body, way));
      const refused = /^[a-z]+_/.test(outcome) && /^[a-z]+_/.test(expected);
      if (!refused && outcome !== expected) t.equal(outcome, expected, 'on the operator listener');
    }
  };
  for (const content of CONTENTS)
    for (const ending of ENDINGS) {
      const body = form([...FIELD_PARTS, { name: 'file', filename: 'a.wav', body: content }], {
        boundary: BOUNDARY,
        closing: ending,
      });
      await check(body, fileStart(body) - 6, body.length);
    }
  for (const preamble of OPENINGS)
    for (const padding of PADDINGS) {
      const plain = form([...FIELD_PARTS, { name: 'file', filename: 'a.wav', body: 'RIFF' }], {
        boundary: BOUNDARY,
        preamble,
      });
      const padded = plain.toString('latin1').replaceAll(/(?<=--XB)(?=(--)?\r\n)/g, padding);
      await check(Buffer.from(padded), 0, 30);
    }
  t.ok(forms > 10_000, `${forms} forms`);
  t.strictSame([...outcomes].sort(), ['file', 'file_not_last', 'form_malformed'], 'each outcome is seen');
});

t.test('large files with what looks like a delimiter come whole, however they are cut', async (t) => {
  const random = seeded(21);
  const almost = Buffer.from(DELIMITER.slice(0, -1));
  for (const content of [
    noise(200_000, 4),
    Buffer.alloc(200_000, '\r\n--'),
    Buffer.alloc(200_000, almost),
    Buffer.alloc(200_000, '\r'),
    Buffer.concat([noise(65_536, 5), Buffer.from(DELIMITER), noise(1000, 6)]),
  ]) {
    const body = form([...FIELD_PARTS, { name: 'file', filename: 'a.wav', body: content }], {
      boundary: BOUNDARY,
    });
    const expected = outcomeOf(body);
    for (let run = 0; run < 20; run += 1) {
      const places = Array.from({ length: 1 + Math.floor(random() * 30) }, () =>
        Math.floor(random() * body.length),
      ).sort((a, b) => a - b);
      const outcome = await received(split(body, [...new Set(places)]), random);
      t.ok(outcome === expected, `cut at ${places}`);
    }
  }
});

/** Returns places for cuts, close to one another after the head of the file. */
function somePlaces(length: number, from: number, random: () => number): readonly number[] {
  const places: number[] = [];
  for (let at = from; at < length; at += 1 + Math.floor(random() * 8)) places.push(at);
  return places;
}
