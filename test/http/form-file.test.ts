import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import busboy from 'busboy';
import t from 'tap';
import type { DomainError } from '../../src/domain/errors.js';
import { FormPermits } from '../../src/http/body/form-permits.js';
import { receiveForm } from '../../src/http/body/upload-form.js';
import { ByteBudget } from '../../src/http/byte-budget.js';
import { DEFAULT_LIMITS, type Exchange } from '../../src/http/exchange.js';
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

/** The bytes of a form's file as hexadecimal digits, or the reason for which the form is refused. */
type Outcome = string;

/** Sends a form in pieces through the service's reader, whose receiver is now and then full. */
async function received(pieces: readonly Buffer[], random: () => number): Promise<Outcome> {
  const request = Object.assign(new Readable({ read: () => {} }), {
    headers: { 'content-type': TYPE },
    complete: true,
  });
  for (const piece of pieces) request.push(piece);
  request.push(null);
  const exchange = {
    request,
    limits: DEFAULT_LIMITS,
    address: '127.0.0.1',
    bytesIn: 0,
    awaitsContinue: false,
    lease: new ByteBudget(1_000_000_000).lease('127.0.0.1'),
    abortBody: undefined,
  } as unknown as Exchange;
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
    request.destroy();
  }
}

/** Has the multipart parser alone read the whole form, and compares the end with the only one that is right. */
function parsed(body: Buffer): Promise<Outcome> {
  return new Promise((resolve) => {
    const file: Buffer[] = [];
    let begun = false;
    const parser = busboy({
      headers: { 'content-type': TYPE },
      limits: { fields: 16, files: 1, parts: 18 },
    });
    parser
      .on('field', () => begun && resolve('file_not_last'))
      .on('file', (_, stream) => {
        if (begun) resolve('file_not_last');
        begun = true;
        stream.on('data', (chunk: Buffer) => file.push(chunk)).on('error', () => {});
      })
      .on('filesLimit', () => resolve('file_not_last'))
      .on('partsLimit', () => resolve('form_malformed'))
      .on('fieldsLimit', () => resolve('form_malformed'))
      .on('error', () => resolve('form_malformed'))
      .on('finish', () => {
        const bytes = Buffer.concat(file);
        const ends = [`${DELIMITER}--`, `${DELIMITER}--\r\n`].map((end) => Buffer.from(end));
        const rest = body.subarray(fileStart(body) + bytes.length);
        resolve(ends.some((end) => end.equals(rest)) ? bytes.toString('hex') : 'form_malformed');
      });
    parser.end(body);
  });
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

t.test('a file that does not pass through the parser ends where the parser would end it', async (t) => {
  const random = seeded(20);
  const outcomes = new Set<string>();
  let forms = 0;
  for (const content of CONTENTS)
    for (const ending of ENDINGS) {
      const body = form([...FIELD_PARTS, { name: 'file', filename: 'a.wav', body: content }], {
        boundary: BOUNDARY,
        closing: ending,
      });
      const expected = await parsed(body);
      outcomes.add(/^[a-z]+_/.test(expected) ? expected : 'file');
      const from = fileStart(body) - 6;
      const places = Array.from({ length: body.length - from }, (_, i) => [from + i]);
      const ways = [
        [],
        ...places,
        ...Array.from({ length: 20 }, () => somePlaces(body.length, from, random)),
      ];
      for (const way of ways) {
        forms += 1;
        const outcome = await received(split(body, way), random);
        if (outcome !== expected)
          t.equal(
            outcome,
            expected,
            `${JSON.stringify(content)} and ${JSON.stringify(ending)}, cut at ${way} of ${body.length}`,
          );
      }
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
    const expected = await parsed(body);
    for (let run = 0; run < 20; run += 1) {
      const places = Array.from({ length: 1 + Math.floor(random() * 30) }, () =>
        Math.floor(random() * body.length),
      ).sort((a, b) => a - b);
      const outcome = await received(split(body, [...new Set(places)]), random);
      t.ok(outcome === expected, `cut at ${places}`);
    }
  }
});

/** Places to cut at, close to one another behind the head of the file. */
function somePlaces(length: number, from: number, random: () => number): readonly number[] {
  const places: number[] = [];
  for (let at = from; at < length; at += 1 + Math.floor(random() * 8)) places.push(at);
  return places;
}
