import { createHash } from 'node:crypto';
import t from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { DEFAULT_LARGE_BYTES, MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import { FormPermits } from '../../src/service/http/body/form-permits.js';
import { FormFraming } from '../../src/service/http/body/multipart-framing.js';
import { ByteBudget } from '../../src/service/http/byte-budget.js';
import { until } from '../fixtures/until.js';
import { noise } from '../fixtures/wav.js';
import { FIELDS, KEY, sleep, startPartner } from './doubles.js';
import { ask, type FormPart, form, jsonOf, matchError, RawClient, request } from './raw-client.js';

const PATH = '/uploads/upl_1';
const TYPE = { 'Content-Type': 'multipart/form-data; boundary=XBOUNDARYX' };
const fields: FormPart[] = Object.entries(FIELDS).map(([name, body]) => ({ name, body }));
const audio = noise(300_000, 3);
const file: FormPart = { name: 'file', filename: 'a.wav', type: 'audio/wav', body: audio };
const post = (body: Uint8Array, headers: Record<string, string> = {}, path = PATH) =>
  request('POST', path, { ...TYPE, ...headers }, body);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

t.test('a form in order is taken whole', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));
  const small = noise(5000, 9);
  const tricky = Buffer.concat([
    Buffer.from('\r\n--XBOUNDARY\r\n--XBOUNDARYY\r\n--'),
    small,
    Buffer.from('\r\n-\r\n--\r\r\n\r\n'),
  ]);
  const cases: [string, Uint8Array, Uint8Array][] = [
    ['whole', post(form([...fields, file])), audio],
    [
      'no line end after the last boundary',
      post(form([...fields, file], { closing: '\r\n--XBOUNDARYX--' })),
      audio,
    ],
    ['audio that looks like boundaries', post(form([...fields, { ...file, body: tricky }])), tricky],
    ['empty file', post(form([...fields, { ...file, body: '' }])), Buffer.alloc(0)],
    ['no type on the file', post(form([...fields, { name: 'file', filename: 'a.wav', body: small }])), small],
    [
      'UTF-8 file name',
      post(form([...fields, { name: 'file', filename: 'Morgenröte.wav', body: small }])),
      small,
    ],
    [
      'quoted boundary with odd characters',
      post(form([...fields, { ...file, body: small }], { boundary: "a b'()+_,-./:=?z" }), {
        'Content-Type': 'Multipart/Form-Data; boundary="a b\'()+_,-./:=?z"',
      }),
      small,
    ],
    [
      'a character set after the boundary',
      post(form([...fields, { ...file, body: small }]), {
        'Content-Type': 'multipart/form-data; boundary=XBOUNDARYX; charset=utf-8',
      }),
      small,
    ],
    [
      'empty parameters',
      post(form([...fields, { ...file, body: small }]), {
        'Content-Type': 'multipart/form-data ;; boundary=XBOUNDARYX ; ;',
      }),
      small,
    ],
    [
      'a character set before the boundary',
      post(form([...fields, { ...file, body: small }]), {
        'Content-Type': 'multipart/form-data; charset="utf-8"; boundary=XBOUNDARYX',
      }),
      small,
    ],
    ['a preamble', post(form([...fields, { ...file, body: small }], { preamble: 'hello\r\n' })), small],
    [
      'a line end before the first boundary',
      post(form([...fields, { ...file, body: small }], { preamble: '\r\n' })),
      small,
    ],
    [
      'an epilogue',
      post(form([...fields, { ...file, body: small }], { closing: '\r\n--XBOUNDARYX--\r\nmore' })),
      small,
    ],
    [
      'padding after the last boundary',
      post(form([...fields, { ...file, body: small }], { closing: '\r\n--XBOUNDARYX-- \t\r\n\r\n' })),
      small,
    ],
    [
      'empty parameters in the headers of parts',
      post(
        form([
          {
            head: 'content-disposition: form-data; ;; name="policy";\r\nContent-Type: text/plain; charset=utf-8;\r\n',
            body: FIELDS.policy,
          },
          { head: 'Content-Disposition: form-data;\r\n name="signature" ;\r\n', body: FIELDS.signature },
          {
            head: 'Content-Disposition: form-data; name="file"; filename="a;;\\";;.wav"; ; \r\n',
            body: small,
          },
        ]),
      ),
      small,
    ],
    [
      'boundary of 70',
      post(form([...fields, { ...file, body: small }], { boundary: 'b'.repeat(70) }), {
        'Content-Type': `multipart/form-data;boundary=${'b'.repeat(70)}`,
      }),
      small,
    ],
  ];
  for (const [name, bytes, expected] of cases) {
    operations.uploads.clear();
    const answer = await ask(port, bytes);
    t.equal(answer!.status, 201, name);
    t.strictSame(
      jsonOf(answer),
      { uploadId: 'upl_1', bytes: expected.length, sha256: sha256(expected) },
      name,
    );
  }
  operations.uploads.clear();
  const body = form([...fields, { ...file, body: tricky }]);
  const bytewise = new RawClient(port);
  await bytewise.send(request('POST', PATH, { ...TYPE, 'Content-Length': String(body.length) }));
  for (const byte of body) bytewise.socket.write(Buffer.from([byte]));
  t.equal(jsonOf(await bytewise.read())['sha256'], sha256(tricky), 'byte by byte');
  operations.uploads.clear();
  await bytewise.send(
    Buffer.concat([
      request('POST', PATH, { ...TYPE, 'Transfer-Encoding': 'chunked' }),
      Buffer.from(`${body.length.toString(16)}\r\n`),
      body,
      Buffer.from('\r\n0\r\n\r\n'),
    ]),
  );
  t.equal((await bytewise.read())!.status, 201, 'chunked, on the same connection');
  operations.uploads.clear();
  await bytewise.send(
    request('POST', PATH, { ...TYPE, Expect: '100-continue', 'Content-Length': String(body.length) }),
  );
  t.equal((await bytewise.read())!.status, 100, '100-continue');
  await bytewise.send(body);
  t.equal((await bytewise.read())!.status, 201);
  await bytewise.send(post(form([...fields, file])));
  matchError(t, await bytewise.read(), 'conflict', 'upload_already_used', 'a second post');
  bytewise.destroy();
  t.ok(await until(() => reports.records.length === cases.length + 4));
  t.notMatch(JSON.stringify(reports.records), /upl_1|policy/, 'the log holds templates only');
  t.strictSame(new Set(reports.uploads), new Set(['stored', 'refused']));
});

t.test('the headers of a part cost the same however their quotes are arranged', async (t) => {
  const headOf = (text: string): { bytes: string; cpu: number } => {
    let cpu = Infinity;
    let bytes = '';
    for (let i = 0; i < 5; i += 1) {
      const framing = new FormFraming('b');
      const began = process.cpuUsage();
      const pieces = [...framing.push(Buffer.from(`--b\r\nContent-Type: x;;${text}\r\n\r\n`, 'latin1'))];
      cpu = Math.min(cpu, process.cpuUsage(began).user);
      bytes = String(pieces.find(({ kind }) => kind === 'head')?.bytes);
    }
    return { bytes, cpu: Math.max(cpu, 100) };
  };
  const plain = headOf(`"${'a'.repeat(16_000)}"`);
  for (const text of [
    `"${'\\"'.repeat(8000)}\\`,
    `"${'\\"'.repeat(8000)}`,
    '"'.repeat(16_001),
    `${'; '.repeat(8000)}a`,
    `${'\r\n '.repeat(5000)}a`,
  ]) {
    const { bytes, cpu } = headOf(text);
    // A pattern that tries each quote again takes a thousand times as long.
    t.ok(cpu < 50 * plain.cpu, `${JSON.stringify(text.slice(0, 6))}: ${cpu} µs, and ${plain.cpu} µs`);
    if (text.startsWith('"')) t.equal(bytes, `Content-Type: x;${text}\r\n\r\n`, 'a quoted string is kept');
  }
});

t.test('a form is answered without a wait when it goes on after its file', async (t) => {
  const { port, listener } = await startPartner({ drainMs: 300 });
  t.teardown(() => listener.close(100));
  const small = { ...file, body: noise(5000, 9) };
  const field = '\r\n--XBOUNDARYX\r\nContent-Disposition: form-data; name="more"\r\n\r\n';
  for (const [closing, reason] of [
    ['\r\n--XBOUNDARYX--\r\n', 'form_malformed'],
    ['\r\n--XBOUNDARYX--', 'form_malformed'],
    [field, 'file_not_last'],
    ['\r\n--XBOUNDARYXY', 'form_malformed'],
  ] as const) {
    const client = new RawClient(port);
    await client.send(request('POST', PATH, { ...TYPE, 'Transfer-Encoding': 'chunked' }));
    const chunk = (bytes: Uint8Array) =>
      client.send(
        Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
      );
    await chunk(form([...fields, small], { closing }));
    // The last chunk and the end of a part never arrive.
    for (let i = 0; i < 3; i += 1) await chunk(Buffer.alloc(32_768));
    matchError(t, await client.read(), 'invalid_request', reason, closing);
    client.destroy();
  }
});

t.test('a form out of order is refused with its reason', async (t) => {
  const { port, listener, operations, reports } = await startPartner({ drainMs: 300 });
  t.teardown(() => listener.close(100));
  const B = '--XBOUNDARYX';
  const cd = (rest: string) => `Content-Disposition: form-data; ${rest}\r\n`;
  const cases: [string, Uint8Array, Parameters<typeof matchError>[2], string | undefined][] = [
    [
      'malformed id',
      post(form([...fields, file]), {}, '/uploads/upl_1%2f..'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'escaped id',
      post(form([...fields, file]), {}, '/uploads/%75pl_1'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'escape that is not UTF-8',
      post(form([...fields, file]), {}, '/uploads/%ff'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'NUL in the id',
      post(form([...fields, file]), {}, '/uploads/upl_1%00'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'id too long',
      post(form([...fields, file]), {}, `/uploads/${'a'.repeat(129)}`),
      'invalid_request',
      'invalid_member',
    ],
    [
      'wrong type',
      post(form([...fields, file]), { 'Content-Type': 'application/json' }),
      'unsupported_media_type',
      undefined,
    ],
    [
      'mixed',
      post(form([...fields, file]), { 'Content-Type': 'multipart/mixed; boundary=XBOUNDARYX' }),
      'unsupported_media_type',
      undefined,
    ],
    [
      'no boundary',
      post(form([...fields, file]), { 'Content-Type': 'multipart/form-data' }),
      'invalid_request',
      'form_malformed',
    ],
    [
      'empty boundary',
      post(form([...fields, file]), { 'Content-Type': 'multipart/form-data; boundary=' }),
      'invalid_request',
      'form_malformed',
    ],
    [
      'two boundaries',
      post(form([...fields, file]), {
        'Content-Type': 'multipart/form-data; boundary=XBOUNDARYX; boundary=b',
      }),
      'invalid_request',
      'form_malformed',
    ],
    [
      'boundary of 71',
      post(form([...fields, file]), { 'Content-Type': `multipart/form-data; boundary=${'b'.repeat(71)}` }),
      'invalid_request',
      'form_malformed',
    ],
    [
      'other boundary',
      post(form([...fields, file]), { 'Content-Type': 'multipart/form-data; boundary=other' }),
      'invalid_request',
      'form_malformed',
    ],
    ['no length', request('POST', PATH, TYPE), 'length_required', undefined],
    ['empty', request('POST', PATH, { ...TYPE, 'Content-Length': '0' }), 'invalid_request', 'form_malformed'],
    [
      'too large by its length',
      request('POST', PATH, { ...TYPE, 'Content-Length': String(DEFAULT_LARGE_BYTES + 65_537) }),
      'payload_too_large',
      'body_too_large',
    ],
    [
      'epilogue that ends like a form',
      post(form([...fields, file], { closing: `\r\n${B}--\r\nx\r\n${B}--\r\n` })),
      'invalid_request',
      'form_malformed',
    ],
    [
      'second form after the first',
      post(Buffer.concat([form([...fields, file]), form([...fields, file])])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'preamble with the boundary inside a line',
      post(form([...fields, file], { preamble: `x${B}\r\n` })),
      'invalid_request',
      'form_malformed',
    ],
    [
      'preamble of more than 64 KiB',
      post(form([...fields, file], { preamble: `${'x'.repeat(65_536)}\r\n` })),
      'invalid_request',
      'form_malformed',
    ],
    [
      'padding of more than 256 characters',
      post(form([...fields, file], { closing: `\r\n${B}--${' '.repeat(257)}\r\n` })),
      'invalid_request',
      'form_malformed',
    ],
    ['no last boundary', post(form([...fields, file], { closing: '' })), 'invalid_request', 'form_malformed'],
    [
      'last boundary cut',
      post(form([...fields, file], { closing: `\r\n${B}-` })),
      'invalid_request',
      'form_malformed',
    ],
    [
      'boundary with a tail in the file',
      post(form([...fields, { ...file, body: `a\r\n${B}yz` }])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'boundary with a tail in a field',
      post(form([{ name: 'policy', body: `a-signed-policy\r\n${B}yz` }, fields[1]!, file])),
      'invalid_request',
      'form_malformed',
    ],
    ['no file', post(form(fields)), 'invalid_request', 'file_missing'],
    ['no part', post(form([], { closing: `${B}--\r\n` })), 'invalid_request', 'file_missing'],
    [
      'two files',
      post(form([...fields, file, { ...file, filename: 'b.wav' }])),
      'invalid_request',
      'file_not_last',
    ],
    [
      'field after the file',
      post(form([fields[0]!, file, fields[1]!])),
      'invalid_request',
      'form_field_missing',
    ],
    [
      'extra field after the file',
      post(form([...fields, file, { name: 'late', body: 'x' }])),
      'invalid_request',
      'file_not_last',
    ],
    [
      'part without disposition after the file',
      post(form([...fields, file, { head: 'X: y\r\n', body: 'x' }])),
      'invalid_request',
      'file_not_last',
    ],
    [
      'part without disposition before it',
      post(form([...fields, { head: 'X: y\r\n', body: 'x' }, file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'part that is not form-data',
      post(form([...fields, { head: 'Content-Disposition: attachment; name="x"\r\n', body: 'x' }, file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'file in another field',
      post(form([...fields, { ...file, name: 'audio' }])),
      'invalid_request',
      'form_field_unknown',
    ],
    [
      'file without a file name',
      post(form([...fields, { name: 'file', body: 'RIFF' }])),
      'invalid_request',
      'file_name_missing',
    ],
    [
      'file without a file name, as bytes',
      post(form([...fields, { name: 'file', type: 'application/octet-stream', body: audio }])),
      'invalid_request',
      'file_name_missing',
    ],
    [
      'file with an empty file name',
      post(form([...fields, { name: 'file', filename: '', body: 'RIFF' }])),
      'invalid_request',
      'file_name_missing',
    ],
    [
      'part without a name',
      post(form([{ body: 'x' }, ...fields, file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'file part without a name',
      post(form([...fields, { filename: 'a.wav', body: 'x' }])),
      'invalid_request',
      'form_malformed',
    ],
    ['field twice', post(form([...fields, fields[0]!, file])), 'invalid_request', 'form_field_duplicated'],
    ['field missing', post(form([fields[0]!, file])), 'invalid_request', 'form_field_missing'],
    [
      'field altered',
      post(form([fields[0]!, { name: 'signature', body: 'other' }, file])),
      'forbidden',
      'form_policy_invalid',
    ],
    [
      'field unknown',
      post(form([...fields, { name: 'acl', body: 'x' }, file])),
      'invalid_request',
      'form_field_unknown',
    ],
    [
      'field name in other case',
      post(form([{ name: 'Policy', body: FIELDS.policy }, fields[1]!, file])),
      'invalid_request',
      'form_field_unknown',
    ],
    [
      '17 fields',
      post(form([...Array.from({ length: 17 }, (_, i) => ({ name: `f${i}`, body: 'x' })), file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'name too long',
      post(form([{ name: 'n'.repeat(65), body: 'x' }, ...fields, file])),
      'invalid_request',
      'form_field_too_large',
    ],
    [
      'field too large',
      post(form([{ name: 'policy', body: 'x'.repeat(8193) }, ...fields, file])),
      'invalid_request',
      'form_field_too_large',
    ],
    [
      'many headers before the file',
      post(
        form([
          ...Array.from({ length: 12 }, (_, i) => ({
            head: `${cd(`name="f${i}"`)}X: ${'x'.repeat(12_000)}\r\n`,
            body: '',
          })),
          file,
        ]),
      ),
      'invalid_request',
      'form_field_too_large',
    ],
    [
      'malformed part head',
      post(form([{ head: 'Content Disposition\r\n', body: 'x' }, ...fields, file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'part head without lines',
      post(form([{ head: '', body: 'x' }, ...fields, file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'part head too large',
      post(form([{ head: `${cd('name="a"')}X: ${'x'.repeat(17_000)}\r\n`, body: 'x' }, ...fields, file])),
      'invalid_request',
      'form_malformed',
    ],
    [
      'base64 file',
      post(
        form([
          ...fields,
          { head: `${cd('name="file"; filename="a"')}Content-Transfer-Encoding: base64\r\n`, body: 'AAAA' },
        ]),
      ),
      'invalid_request',
      'form_malformed',
    ],
    [
      'field of an unknown character set',
      post(
        form([
          { head: `${cd('name="policy"')}Content-Type: text/plain; charset=utf-16\r\n`, body: 'AAAA' },
          file,
        ]),
      ),
      'invalid_request',
      'form_malformed',
    ],
    [
      'base64 field',
      post(
        form([{ head: `${cd('name="policy"')}Content-Transfer-Encoding: base64\r\n`, body: 'AAAA' }, file]),
      ),
      'invalid_request',
      'form_malformed',
    ],
    [
      'compressed form',
      post(form([...fields, file]), { 'Content-Encoding': 'gzip' }),
      'unsupported_media_type',
      undefined,
    ],
  ];
  for (const [name, bytes, code, reason] of cases) {
    matchError(t, await ask(port, bytes), code, reason, name);
  }
  t.equal(operations.uploads.size, 0, 'none was stored');
  t.equal(operations.aborted, operations.opened.length, 'every slot that was claimed was given back');
  t.ok(reports.uploads.every((outcome) => outcome === 'refused'));
  t.equal(reports.faults.length, 0);

  for (const [bytes, message] of [
    [post(form([...fields, fields[0]!, file])), 'The field `policy` of the form is repeated.'],
    [
      post(form([{ name: 'big', body: 'x'.repeat(8193) }, ...fields, file])),
      'The field `big` of the form is too large.',
    ],
    [
      post(form([...fields, { name: 'acl', body: 'x' }, file])),
      'The form has the field `acl`, which does not belong to the upload slot.',
    ],
    [
      post(form([...fields, { ...file, name: 'audio' }])),
      'The file is in the field `audio`. It must be in the field `file`.',
    ],
    [
      post(form([...fields, { head: 'X: y\r\n', body: 'x' }, file])),
      'A part of the form has no Content-Disposition of the type form-data.',
    ],
    [
      post(form([...fields, { ...file, body: '' }], { boundary: 'other' })),
      'The form does not contain its boundary.',
    ],
  ] as const)
    t.equal(jsonOf(await ask(port, bytes))['error'], message);

  const length = (bytes: number) => ({ ...TYPE, 'Content-Length': String(bytes) });
  const begun = form([...fields, file], { closing: '' });
  const declared = (bytes: number) => Buffer.concat([request('POST', PATH, length(bytes)), begun]);
  const opened = operations.opened.length;
  matchError(
    t,
    await ask(port, declared(MAX_UPLOAD_BYTES + 65_537)),
    'payload_too_large',
    'body_too_large',
    'a declared length beyond that of the slot is refused before the file has arrived',
  );
  t.equal(operations.opened.length, opened, 'and takes no place');

  operations.refusal = new DomainError('unavailable', 'Too many uploads at once.', {
    reason: 'engine_full',
    retryAfterSeconds: 3,
  });
  const full = await ask(port, post(form([...fields, file])));
  matchError(t, full, 'unavailable', 'engine_full', 'a full engine');
  t.equal(full!.headers.get('retry-after'), '3');
});

t.test('65 MiB is exact, with backpressure and in constant memory', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  const exact = Buffer.alloc(MAX_UPLOAD_BYTES, 'takemark');
  const passed = await ask(port, post(form([...fields, { ...file, body: exact }])));
  t.equal(passed!.status, 201);
  t.strictSame(jsonOf(passed), { uploadId: 'upl_1', bytes: 68_157_440, sha256: sha256(exact) });
  operations.uploads.clear();
  const over = form([...fields, { ...file, body: Buffer.concat([exact, Buffer.from('x')]) }]);
  matchError(t, await ask(port, post(over)), 'payload_too_large', 'body_too_large', 'one more');

  const endless = new RawClient(port);
  await endless.send(Buffer.concat([request('POST', PATH, { ...TYPE, 'Transfer-Encoding': 'chunked' })]));
  const first = form([...fields, { ...file, body: '' }], { closing: '' });
  await endless.send(
    Buffer.concat([Buffer.from(`${first.length.toString(16)}\r\n`), first, Buffer.from('\r\n')]),
  );
  operations.maxBytes = 1_048_576;
  const mebibyte = Buffer.concat([
    Buffer.from('100000\r\n'),
    Buffer.alloc(1_048_576, 1),
    Buffer.from('\r\n'),
  ]);
  const sending = (async () => {
    for (let i = 0; i < 400 && !endless.socket.destroyed; i += 1) await endless.send(mebibyte);
  })();
  const refused = await endless.read();
  matchError(t, refused, 'payload_too_large', 'body_too_large', 'readable while the caller still sends');
  t.ok(await endless.ended(), 'and the connection is cut beyond a bound');
  endless.destroy();
  await sending;
  t.equal(operations.aborted, 2);

  operations.maxBytes = MAX_UPLOAD_BYTES;
  operations.written = 0;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  operations.gate = () => held;
  const pushing = new RawClient(port);
  let sent = 0;
  pushing.socket.on('error', () => {});
  const bytes = post(form([...fields, { ...file, body: exact }]));
  const push = (async () => {
    for (let at = 0; at < bytes.length; at += 65_536) {
      await pushing.send(bytes.subarray(at, at + 65_536));
      sent = at;
    }
  })();
  await sleep(400);
  t.ok(operations.written <= 65_536, 'a receiver that is full gets one chunk');
  t.ok(sent < 16 * 1_048_576, `and the caller is held back by the socket (${sent} bytes sent)`);
  operations.gate = undefined;
  release();
  await push;
  t.equal(jsonOf(await pushing.read())['sha256'], sha256(exact), 'released, it ends as it should');
  pushing.destroy();
});

t.test(
  'a file that ends while the engine has no room for its last bytes is stored when there is',
  async (t) => {
    const { port, listener, operations } = await startPartner();
    t.teardown(() => listener.close(100));
    let release = () => {};
    const room = new Promise<void>((resolve) => {
      release = resolve;
    });
    operations.gate = () => room;
    const short = noise(5000, 9);
    const client = new RawClient(port);
    await client.send(post(form([...fields, { ...file, body: short }])));
    t.ok(await until(() => operations.written === short.length));
    await sleep(50);
    t.equal(operations.aborted, 0);
    release();
    const stored = await client.read();
    t.equal(stored!.status, 201);
    t.equal(jsonOf(stored)['sha256'], sha256(short));
    client.destroy();
  },
);

t.test('a large file lasts longer than a slot lives, and keeps a least rate', async (t) => {
  const { port, listener, operations } = await startPartner({
    idleMs: 60_000,
    minRate: 1,
    graceMs: 100,
    streamMs: 300,
    minLargeRate: 5000,
  });
  t.teardown(() => listener.close(100));
  operations.largeBytes = 1_000_000_000;
  const whole = form([...fields, file]);
  const head = request('POST', PATH, { ...TYPE, 'Content-Length': String(whole.length) });
  const steady = new RawClient(port);
  t.teardown(() => steady.destroy());
  const began = performance.now();
  // At the least rate, the first bytes alone suffice for 20 seconds.
  await steady.send(Buffer.concat([head, whole.subarray(0, 100_000)]));
  for (let at = 100_000; at < whole.length; at += 5000) {
    // The last bytes are sent after the time limit of other bodies.
    do await sleep(5);
    while (at + 5000 >= whole.length && performance.now() - began < 900);
    await steady.send(whole.subarray(at, at + 5000));
  }
  t.equal((await steady.read())!.status, 201);

  operations.uploads.clear();
  const slow = new RawClient(port);
  t.teardown(() => slow.destroy());
  await slow.send(Buffer.concat([head, whole.subarray(0, 1000)]));
  let at = 1000;
  const feeding = setInterval(() => slow.socket.write(whole.subarray(at, (at += 100))), 50);
  t.teardown(() => clearInterval(feeding));
  matchError(t, await slow.read(), 'timeout', 'client_too_slow', 'below the least rate of large files');
});

t.test('a caller that stalls or leaves frees its place', async (t) => {
  const { port, listener, operations, reports } = await startPartner({
    idleMs: 250,
    graceMs: 500,
    minRate: 2000,
    streamMs: 2000,
    drainMs: 200,
  });
  t.teardown(() => listener.close(100));
  const whole = form([...fields, file]);
  const head = request('POST', PATH, { ...TYPE, 'Content-Length': String(whole.length) });
  const stages: [string, number][] = [
    ['before the body', 0],
    ['within the first boundary', 5],
    ['within a field', 90],
    ['within the file part head', whole.indexOf('a.wav') + 3],
    ['at the first audio byte', whole.indexOf('audio/wav') + 13],
    ['within the audio', 200_000],
    ['within the last boundary', whole.length - 5],
    ['one byte before the end', whole.length - 1],
  ];
  for (const [name, at] of stages) {
    const stalled = new RawClient(port);
    await stalled.send(Buffer.concat([head, whole.subarray(0, at)]));
    matchError(t, await stalled.read(), 'timeout', 'client_too_slow', `stalls ${name}`);
    t.ok(await stalled.ended(), `${name}: its connection ends`);
    stalled.destroy();
    for (const leave of ['reset', 'end'] as const) {
      const count = reports.uploads.length;
      const client = new RawClient(port);
      await client.send(Buffer.concat([head, whole.subarray(0, at)]));
      await client.arrived();
      if (leave === 'reset') client.socket.resetAndDestroy();
      else client.destroy();
      t.ok(await until(() => reports.uploads.length > count), `leaves ${name} (${leave})`);
      t.equal(reports.uploads.at(-1), 'aborted');
    }
  }
  t.equal(operations.aborted, operations.opened.length, 'every slot was given back');
  t.equal(operations.uploads.size, 0);
  t.equal(reports.faults.length, 0);

  const drip = new RawClient(port);
  await drip.send(Buffer.concat([head, whole.subarray(0, 90)]));
  const started = Date.now();
  const timer = setInterval(() => drip.socket.write('x'), 50);
  matchError(t, await drip.read(), 'timeout', 'client_too_slow', 'a drip below the rate');
  t.ok(Date.now() - started >= 150);
  clearInterval(timer);
  drip.destroy();

  const { port: strict, listener: strictListener } = await startPartner({ fieldsMs: 150 });
  t.teardown(() => strictListener.close(100));
  const dawdling = new RawClient(strict);
  await dawdling.send(Buffer.concat([head, whole.subarray(0, 90)]));
  matchError(
    t,
    await dawdling.read(),
    'timeout',
    'client_too_slow',
    'fields that do not come hold no place for long',
  );
  dawdling.destroy();

  const { port: long, listener: longListener } = await startPartner({
    idleMs: 10_000,
    minRate: 2000,
    streamMs: 2000,
  });
  t.teardown(() => longListener.close(100));
  const patient = new RawClient(long);
  await patient.send(Buffer.concat([head, whole.subarray(0, 50_000)]));
  let at = 50_000;
  const feeding = setInterval(() => patient.socket.write(whole.subarray(at, (at += 500))), 50);
  const began = Date.now();
  matchError(
    t,
    await patient.read(),
    'timeout',
    'client_too_slow',
    'above the rate, but longer than a slot lives',
  );
  t.ok(Date.now() - began >= 1900);
  clearInterval(feeding);
  patient.destroy();

  operations.gate = () => sleep(600);
  const slowUs = await ask(port, post(form([...fields, { ...file, body: noise(1000) }])));
  t.equal(slowUs!.status, 201, 'time that the service takes does not count');
  operations.gate = undefined;

  const { port: calm, listener: calmListener, operations: calmOperations } = await startPartner();
  t.teardown(() => calmListener.close(100));
  const broken = new RawClient(calm);
  await broken.send(
    Buffer.concat([
      request('POST', PATH, { ...TYPE, 'Transfer-Encoding': 'chunked' }),
      Buffer.from(`${(70_000).toString(16)}\r\n`),
      whole.subarray(0, 70_000),
      Buffer.from('zz\r\n'),
    ]),
  );
  matchError(t, await broken.read(), 'invalid_request', 'malformed_http', 'broken chunking within the audio');
  t.ok(await broken.ended());
  await until(() => calmOperations.aborted === 1);
  t.strictSame([calmOperations.opened.length, calmOperations.aborted], [1, 1], 'and its slot is given back');
  broken.destroy();
});

t.test('the signed fields are judged when they arrive', async (t) => {
  const { port, listener, operations } = await startPartner({ fieldsMs: 1000, drainMs: 100 });
  t.teardown(() => listener.close(100));
  const unfinished = (parts: FormPart[]) => {
    // Includes the boundary after the last part, because a part ends at a boundary.
    const body = form(parts, { closing: '\r\n--XBOUNDARYX\r\n' });
    return Buffer.concat([request('POST', PATH, { ...TYPE, 'Content-Length': '1000000' }), body]);
  };
  for (const [name, parts, code, reason] of [
    ['altered', [fields[0]!, { name: 'signature', body: 'other' }], 'forbidden', 'form_policy_invalid'],
    ['one unknown before', [{ name: 'acl', body: 'x' }, ...fields], 'invalid_request', 'form_field_unknown'],
    [
      'one unknown after them',
      [...fields, { name: 'acl', body: 'x' }],
      'invalid_request',
      'form_field_unknown',
    ],
  ] as const) {
    const client = new RawClient(port);
    await client.send(unfinished([...parts]));
    matchError(t, await client.read(), code, reason, `${name}: refused with no file in sight`);
    client.destroy();
  }
  operations.opened.length = 0;
  const right = new RawClient(port);
  const whole = post(form([...fields, file]));
  const head = whole.indexOf('name="file"');
  await right.send(whole.subarray(0, head));
  t.ok(await until(() => operations.opened.length === 1), 'the slot is claimed before the file begins');
  const unproven = new RawClient(port);
  await unproven.send(whole.subarray(0, 200));
  matchError(t, await unproven.read(), 'timeout', 'client_too_slow', 'time for the fields ends');
  unproven.destroy();
  await right.send(whole.subarray(head));
  t.equal((await right.read())!.status, 201, 'and is not counted against a form that is proven');
  right.destroy();
});

t.test('places of forms without proof go to newcomers, the oldest first', async (t) => {
  const { port, listener, operations, reports } = await startPartner({
    forms: 2,
    fieldsMs: 60_000,
    drainMs: 200,
  });
  t.teardown(() => listener.close(100));
  const whole = post(form([...fields, file]));
  const proven = new RawClient(port);
  await proven.send(whole.subarray(0, 100_000));
  t.ok(await until(() => operations.opened.length === 1));
  const unproven: RawClient[] = [];
  for (let i = 0; i < 4; i += 1) {
    unproven.push(new RawClient(port));
    await unproven[i]!.send(whole.subarray(0, 200));
    if (i >= 2)
      matchError(
        t,
        await unproven[i - 2]!.read(),
        'unavailable',
        'concurrency_exceeded',
        `the ${i + 1}th takes the oldest's place`,
      );
  }
  operations.uploads.clear();
  t.equal(
    (await ask(port, post(form([...fields, file]), {}, '/uploads/upl_2')))!.status,
    201,
    'a form with its fields is served',
  );
  await unproven[3]!.send(whole.subarray(200));
  t.equal(
    (await unproven[3]!.read())!.status,
    201,
    'and so is the youngest of those that had none, when they come',
  );
  operations.uploads.clear();
  await proven.send(whole.subarray(100_000));
  t.equal((await proven.read())!.status, 201, 'the proven one was never in question');
  t.strictSame(reports.displacements, Array(3).fill('form_oldest'));
  for (const client of [proven, ...unproven]) client.destroy();
});

t.test('an address has its bound of forms without proof', (t) => {
  const displaced: string[] = [];
  const permits = new FormPermits({
    max: 4,
    maxOfAddress: 2,
    state: 'wait',
    displacedByAny: 'form_oldest',
    displacedByAddress: 'form_of_address',
    observer: { displaced: (reason) => displaced.push(reason) },
  });
  const gone: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = (name: string, address: string) =>
    leave.set(
      name,
      permits.acquire(address, (error) => {
        gone.push(`${name} ${error.code} ${error.reason} ${error.retryAfterSeconds}`);
        leave.get(name)!();
      }),
    );
  for (const name of ['a1', 'a2', 'a3']) enter(name, 'a');
  t.strictSame(gone.splice(0), ['a1 rate_limited concurrency_exceeded 2'], 'its own oldest goes');
  enter('b1', 'b');
  enter('b2', 'b');
  t.strictSame(gone.splice(0), []);
  enter('c1', 'c');
  t.strictSame(
    gone.splice(0),
    ['a2 unavailable concurrency_exceeded 2'],
    'the oldest of all, when no place is left',
  );
  leave.get('a3')!();
  leave.get('a3')!();
  enter('a4', 'a');
  t.strictSame(gone.splice(0), [], 'a place that was given back is free');
  t.strictSame(displaced, ['form_of_address', 'form_oldest']);
  t.end();
});

t.test('an address has its bound of stalled posts', async (t) => {
  const { port, listener, operations, reports } = await startPartner({
    idleMs: 60_000,
    stalledMs: 40,
    stalledOfAddress: 2,
    drainMs: 200,
  });
  t.teardown(() => listener.close(100));
  const posts: RawClient[] = [];
  const whole = (i: number) => post(form([...fields, file]), {}, `/uploads/upl_${i}`);
  for (let i = 0; i < 3; i += 1) {
    posts.push(new RawClient(port));
    await posts[i]!.send(whole(i).subarray(0, 100_000));
    t.ok(await until(() => operations.opened.length === i + 1));
  }
  const first = await Promise.race(posts.map(async (client, i) => ({ i, answer: await client.read() })));
  matchError(t, first.answer, 'rate_limited', 'concurrency_exceeded', 'one of three is refused');
  await sleep(200);
  t.strictSame(reports.displacements, ['upload_of_address'], 'and no more');
  for (const [i, client] of posts.entries()) {
    if (i !== first.i) await client.send(whole(i).subarray(100_000));
  }
  await until(() => operations.uploads.size === 2);
  t.equal(operations.uploads.size, 2, 'the others go on');
  t.equal(operations.aborted, 1);
  for (const client of posts) client.destroy();
});

t.test('large bodies at once are bounded', async (t) => {
  const BODY_BYTES = 40_000;
  const FIRST_BYTES = 30_000;
  // Room for two bodies that have begun, and for the growth of one of them.
  const budget = new ByteBudget(125_000);
  const { port, listener, operations } = await startPartner({ drainMs: 200 }, { budget });
  t.teardown(() => listener.close(100));
  t.equal((await ask(port, post(form([...fields, file]))))!.status, 201);
  const verify = (body: string) =>
    request('POST', '/v1/verify', { 'x-api-key': KEY, 'Content-Type': 'application/json' }, body);
  const large = verify(JSON.stringify({ uploadId: 'upl_1', sidecar: 'A'.repeat(BODY_BYTES) }));
  const begin = async () => {
    const caller = new RawClient(port);
    await caller.send(large.subarray(0, FIRST_BYTES));
    return caller;
  };
  const first = await begin();
  t.ok(await until(() => budget.held > 0));
  const one = budget.held;
  const second = await begin();
  t.ok(await until(() => budget.held > one));
  const third = await begin();
  matchError(t, await third.read(), 'unavailable', 'ingress_full', 'a third body');
  t.equal((await ask(port, verify('{"uploadId":"upl_1"}')))!.status, 200, 'small bodies pass');
  second.destroy();
  t.ok(await until(() => budget.held === one), 'a caller that leaves gives its share back');
  await first.send(large.subarray(FIRST_BYTES));
  t.equal((await first.read())!.status, 200);
  first.destroy();
  third.destroy();
  t.equal(operations.verified.length, 2);
});
