/** The two readers that can be reached only over a connection. */
import { connect } from 'node:net';
import { noise } from '../../fixtures/wav.js';
import { FIELDS, KEY, startPartner } from '../../http/doubles.js';
import { form, request } from '../../http/raw-client.js';
import { BlockCoverage } from './coverage.js';
import type { Target } from './guided.js';
import { cutOf, must, type OpenTarget, text } from './targets.js';

/**
 * Sends bytes on a connection, cut at a place that the input's digest determines. Every answer must have an
 * id, and none may be a server error.
 */
export async function openFraming(): Promise<OpenTarget> {
  const { listener, port, reports } = await startPartner();
  const verify = request(
    'POST',
    '/v1/verify',
    { 'x-api-key': KEY, 'Content-Type': 'application/json' },
    '{"uploadId":"upl_1"}',
  );
  const head = `x-api-key: ${KEY}\r\nHost: a\r\n`;
  const target: Target = {
    name: 'http-framing',
    seeds: [
      Buffer.from(`GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n`),
      verify,
      Buffer.from(
        `POST /v1/verify HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"upl\r\nf\r\noadId":"upl_1"}\r\n0\r\n\r\n`,
      ),
      Buffer.from(
        `GET /v1/proofs?limit=2 HTTP/1.1\r\n${head}\r\nGET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      ),
      Buffer.from(`DELETE /v1/proofs/prf_1 HTTP/1.1\r\n${head}Expect: 100-continue\r\n\r\n`),
    ],
    words: text(
      '\r\n',
      '\r\n\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Content-Length: 0\r\n',
      'Content-Length: 5\r\n',
      'Connection: close\r\n',
      'Expect: 100-continue\r\n',
      'Upgrade: h2c\r\nConnection: upgrade\r\n',
      'Host: b\r\n',
      'HTTP/1.0',
      'OPTIONS * ',
      '0\r\n\r\n',
      ' \t',
      '\0',
    ),
    maxBytes: 4096,
    async run(input) {
      checkAnswers(await exchangeBytes(port, input));
      must(reports.faults.length === 0, `a fault of ours: ${String(reports.faults[0])}`);
    },
  };
  return { ...target, coverage: new BlockCoverage(['/src/service/http/']), close: () => listener.close(0) };
}

/**
 * Sends a form whole and cut in two. Both must get the same answer, and the digest of the file if it is
 * accepted.
 */
export async function openForm(): Promise<OpenTarget> {
  const { listener, port, reports, operations } = await startPartner();
  const good = [
    { name: 'policy', body: FIELDS.policy },
    { name: 'signature', body: FIELDS.signature },
    { name: 'file', filename: 'a.wav', type: 'audio/wav', body: noise(300) },
  ];
  const target: Target = {
    name: 'upload-form',
    seeds: [
      form(good),
      form(good, { closing: '\r\n--XBOUNDARYX--' }),
      form([good[2]!]),
      form([...good, { name: 'x', body: 'y' }]),
    ],
    words: text(
      '\r\n--XBOUNDARYX',
      '\r\n--XBOUNDARYX--\r\n',
      '--XBOUNDARYX\r\n',
      'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
      '\r\n\r\n',
      'name="policy"',
      'filename=""',
      'Content-Transfer-Encoding: base64\r\n',
      "; name*=utf-8''x",
      '\r\n--',
    ),
    maxBytes: 8192,
    async run(input) {
      const head = Buffer.from(
        `POST /uploads/upl_1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=XBOUNDARYX\r\nContent-Length: ${input.length}\r\n\r\n`,
      );
      const answers: string[] = [];
      for (const cut of [head.length + input.length, head.length + cutOf(input)]) {
        const [answer] = checkAnswers(await exchangeBytes(port, Buffer.concat([head, input]), cut));
        must(answer !== undefined, 'a form was not answered');
        const { reason, sha256, bytes } = JSON.parse(answer!.body) as Record<string, unknown>;
        answers.push(JSON.stringify([answer!.status, reason, sha256, bytes]));
        operations.uploads.clear();
      }
      must(answers[0] === answers[1], `cut in two it is read differently: ${answers.join(' ')}`);
      must(reports.faults.length === 0, `a fault of ours: ${String(reports.faults[0])}`);
    },
  };
  return {
    ...target,
    coverage: new BlockCoverage([
      '/src/service/http/body/upload-form',
      '/src/service/http/body/multipart-framing',
      'busboy',
      'streamsearch',
    ]),
    close: () => listener.close(0),
  };
}

/** Sends the bytes in two pieces, ends the sending side, and reads until the other side ends. */
function exchangeBytes(port: number, bytes: Buffer, cut = cutOf(bytes)): Promise<Buffer> {
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }, () => {
      socket.write(bytes.subarray(0, cut));
      // A separate turn of the event loop makes a separate piece.
      setImmediate(() => socket.end(bytes.subarray(cut)));
    });
    const end = (): void => {
      socket.destroy();
      resolve(Buffer.concat(received));
    };
    socket
      .on('data', (data) => received.push(data))
      .once('end', end)
      .once('close', end)
      .once('error', end);
  });
}

interface WireAnswer {
  readonly status: number;
  readonly body: string;
}

/** @throws Error unless the bytes are whole answers, each with an id, none of them a 500 */
function checkAnswers(bytes: Buffer): readonly WireAnswer[] {
  const answers: WireAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at);
    must(end >= 0, 'an answer has no end of its head');
    const head = bytes.toString('latin1', at, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    must(status >= 100 && status !== 500, `status ${status}`);
    at = end + 4;
    if (status === 100) continue;
    must(/^x-request-id: rq_[0-9A-Z]{26}$/im.test(head), 'an answer has no request id');
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    const body = bytes.toString('utf8', at, at + length);
    // An answer to HEAD has a length and no body, so the next answer follows its head.
    if (status >= 400 && body !== '' && !body.startsWith('HTTP/'))
      must(typeof (JSON.parse(body) as { code?: unknown }).code === 'string', 'a refusal without a code');
    if (body.startsWith('HTTP/')) continue;
    at += length;
    answers.push({ status, body });
  }
  return answers;
}
