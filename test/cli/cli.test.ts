import { spawn } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseBuffer } from 'music-metadata';
import t from 'tap';
import type { ShownProduction } from '../../src/cli/demo/productions.js';
import { aiff, broadcastWave } from '../../src/cli/specimens/audio-files.js';
import { renderRecording } from '../../src/cli/specimens/music.js';
import { MAIN, setUp } from './bench.js';

const COMMANDS = [
  'verify',
  'report',
  'proofs list',
  'proofs get',
  'proofs asset',
  'proofs erase',
  'records get',
  'identify',
  'inspect',
  'strip',
  'reviews create',
  'reviews get',
  'reviews list',
  'reviews ask',
  'reviews answer',
  'reviews resolve',
  'health',
  'keys list',
  'keys rotate',
  'usage',
  'seal',
  'demo',
  'capture ardour',
  'capture ardour-hook',
  'capture audacity',
  'serve',
  'consumers',
  'completion bash',
  'completion zsh',
  'completion fish',
  'authority init',
  'authority issue',
  ...[
    'partner create',
    'partner list',
    'plan list',
    'plan create',
    'plan set',
    'plan assign',
    'key create',
    'key list',
    'key revoke',
    'issue',
    'trace simulate',
    'declaration record',
    'declaration list',
    'reviews list',
    'reviews get',
    'reviews supply',
    'erasure status',
    'audit read',
    'audit export',
    'audit verify',
    'audit stores',
    'samples fill',
    'authority',
    'signing list',
    'signing revoke',
    'signing reinstate',
    'devices list',
    'devices enrol',
    'devices revoke',
    'source-detail approve',
    'source-detail withdraw',
    'consent grant',
    'consent revoke',
    'signing request',
    'signing install',
    'migrate',
    'doctor',
    'secrets init',
    'secrets rotate',
    'backup',
    'restore',
    'dlq list',
    'dlq replay',
    'dlq discard',
  ].map((name) => `operator ${name}`),
];

t.test('the help of every command fits 80 columns', async (t) => {
  const { takemark } = await setUp(t);
  for (const words of COMMANDS) {
    const { code, out, err } = await takemark(...words.split(' '), '--help');
    t.match({ code, err }, { code: 0, err: '' }, words);
    t.match(out, new RegExp(`^Usage: takemark ${words} `));
    t.strictSame(
      out.split('\n').filter((line) => line.length > 80),
      [],
      `${words}: no line is longer`,
    );
    t.match(out, new RegExp(`^Example:\\n  takemark ${words}( |$)`, 'm'), `${words}: an example`);
    const output = /--out (\S+)/.exec(out.slice(out.lastIndexOf('Example:')))?.[1];
    if (output !== undefined)
      t.equal(
        out.slice(out.lastIndexOf('Example:')).split(output).length,
        2,
        `${words}: no input is the output`,
      );
    if (!/authority|secrets|serve|consumers|completion|capture|audit export/.test(words))
      t.match(out, /--json/);
  }
});

t.test('help is found by every way in, and before the words are judged', async (t) => {
  const { takemark } = await setUp(t);
  t.strictSame(await takemark('--version'), { code: 0, out: 'takemark 1.2.3\n', err: '' });
  t.strictSame(await takemark('-V'), { code: 0, out: 'takemark 1.2.3\n', err: '' });
  t.match(await takemark('--help'), { code: 0, out: /^ {2}operator +/m, err: '' });
  t.match(await takemark(), { code: 2, out: '', err: /^Usage: takemark / });
  t.match(await takemark('operator', '-h'), { code: 0, out: /^ {2}issue +/m });
  t.match(await takemark('operator', 'key'), { code: 2, out: '', err: /^ {2}create +/m });
  const help = await takemark('operator', 'key', 'create', '--help');
  for (const words of [
    ['help', 'operator', 'key', 'create'],
    ['operator', 'key', 'create', '-h'],
    ['operator', 'key', 'create', '--partner', '--nope', '--help'],
  ])
    t.strictSame(await takemark(...words), help, words.join(' '));
  t.match(await takemark('frob', '--help'), { code: 2, out: '', err: /unknown command 'frob'/ });
  t.match(
    await takemark('verify', '--', '--help'),
    { code: 3, err: /--help: no such file or directory/ },
    'a file of that name',
  );
});

t.test('wrong use prints one line that names the help', async (t) => {
  const { takemark } = await setUp(t);
  for (const [words, err] of [
    [['frob'], /unknown command 'frob' \(see takemark --help\)/],
    [['verfy', 'a'], /unknown command 'verfy' \(Did you mean verify\?\)/],
    [['operator', 'frob'], /unknown command 'frob' \(see takemark operator --help\)/],
    [['operator', 'kye', 'list'], /unknown command 'kye' \(Did you mean key\?\)/],
    [['verify'], /missing required argument 'file' \(see takemark verify --help\)/],
    [['verify', 'a', 'b', '--json'], /use --format jsonl/],
    [['verify', 'a', 'b', '--sidecar', 's'], /--sidecar works only with a single file/],
    [['verify', 'a', '--format', 'xml'], /--format .* one of table, jsonl, csv/],
    [['verify', 'a', 'b', '--concurrency', '0'], /--concurrency .* a whole number from 1 to 64/],
    [['verify', 'a', ''], /an operand is empty/],
    [['keys', 'rotate'], /required option '--state <file>'/],
    [['usage', '--days', '93'], /--days .* a whole number from 1 to 92/],
    [['operator', 'key', 'revoke', '--partner', 'p'], /missing required argument 'keyId'/],
    [['operator', 'reviews', 'supply', 'rev_1'], /missing required argument 'requestId'/],
    [['operator', 'audit', 'read', 'p', '--limit', '1e3'], /--limit .* a whole number/],
    [
      ['operator', 'key', 'create', '--partner', 'p', '--name', 'n', '--scopes', 'verify,,erase'],
      /--scopes has an empty entry/,
    ],
    [['operator', 'audit', 'read', 'p', 'q'], /too many arguments for 'read'/],
    [['verify', 'a', '--nope'], /unknown option '--nope'/],
    [['verify', 'a', '--jsn'], /unknown option '--jsn' \(Did you mean --json\?\)/],
    [['verify', 'a', '--json=yes'], /unknown option '--json=yes'/],
    [['verify', 'a', '--sidecar'], /'--sidecar <file>' argument missing/],
    [['verify', 'a', '--sidecar', '--json'], /starts with a dash as --sidecar=--json/],
    [['verify', 'a', '--sidecar='], /--sidecar .* is empty/],
    [['operator', 'key', 'create', '--partner', 'p'], /required option '--name <name>'/],
    [['operator', 'issue', 'a', '--partner', 'p', '--song', 's'], /--out is missing/],
    [['seal', 'a'], /--out is missing/],
    [['operator', 'dlq', 'list', '--topic', 'errors'], /--topic .* one of erasure, usage, retention/],
    [['operator', 'dlq', 'replay'], /required option '--topic <topic>'/],
    [
      ['operator', 'secrets', 'rotate', '--in', 'a', '--out', 'b', '--step', 'go'],
      /--step .* one of add, use, drop/,
    ],
    [
      ['operator', 'secrets', 'rotate', '--in', 'a', '--out', 'b', '--step', 'use', '--early'],
      /--early works only with --step drop/,
    ],
  ] as const) {
    const ran = await takemark(...words);
    t.match(ran, { code: 2, out: '', err }, words.join(' '));
    t.equal(ran.err.split('\n').length, 2, 'one line');
  }
});

t.test('verify explains a verdict, in words or JSON, and exits by it', async (t) => {
  const { service, file, takemark, onTerminal } = await setUp(t);
  const path = await file('song.wav');
  const decision = {
    status: 'verified_binding',
    reasons: ['credential_verified'],
    recommendedAction: 'accept_credential',
    credentialCarrier: 'embedded',
    sourceDetailCoverage: 'none',
    counts: {},
  };
  service.verdict = {
    verdict: 'valid',
    good: true,
    decision,
    issuedAt: 1_767_225_600,
    proofId: 'prf_1',
    verifiedAt: 1,
    audio: {
      container: 'riff',
      sampleRate: 44_100,
      bitsPerSample: 16,
      channels: 2,
      durationSeconds: 61.2,
      bytes: 10,
      sha256: 'ff',
    },
  };
  const good = await takemark('verify', path);
  t.match(good, { code: 0, err: '', out: /^✔ VALID {2}song\.wav\n/ });
  t.match(good.out, /issued +2026-01-01T00:00:00Z/);
  t.match(good.out, /WAV, 44\.1 kHz, 16 bit, stereo, 1:01/);
  t.notMatch(good.out, /\u001b/, 'no colours in a pipe');
  const coloured = await onTerminal('verify', path);
  t.match(coloured.out, /\u001b\[1;32m✔ VALID/);
  t.match(coloured.err, /song\.wav {2}█+ 100%/);
  t.ok(coloured.err.endsWith('\u001b[2K'), 'the bar goes away');
  const json = await takemark('verify', path, '--json');
  t.match(JSON.parse(json.out), { verdict: 'valid', accepted: true, proofId: 'prf_1' });
  t.equal(json.out.split('\n').length, 2, 'one line');

  for (const [verdict, title] of [
    ['audioChanged', 'AUDIO CHANGED'],
    ['tampered', 'TAMPERED'],
    ['unregistered', 'UNREGISTERED'],
    ['unreadable', 'UNREADABLE'],
    ['local_seal', 'LOCAL SEAL'],
    ['brand_new', 'UNKNOWN VERDICT brand_new'],
    ['toString', 'UNKNOWN VERDICT toString'],
  ] as const) {
    service.verdict = {
      verdict,
      good: verdict === 'brand_new',
      decision: { ...decision, reasons: ['\u001b[31mred\u009b'] },
    };
    const bad = await takemark('verify', path);
    t.equal(bad.code, 1, verdict);
    t.ok(bad.out.startsWith(`✘ ${title}`));
    t.notMatch(bad.out, /\u001b|\u009b/, 'what others wrote does not steer the terminal');
  }
  for (const [embeddedCredential, line] of [
    [
      { integrity: 'verified', trust: 'unknown', issuer: 'Other' },
      /signed by +Other \(integrity verified, trust unknown\)/,
    ],
    [
      { integrity: 'verified', trust: 'device', device: 'Laptop' },
      /signed by +a device with the self-declared name Laptop /,
    ],
    [{ integrity: 'failed', trust: 'unknown' }, /signed by +unknown \(integrity failed, trust unknown\)/],
  ] as const) {
    service.verdict = { verdict: 'unregistered', good: false, decision, embeddedCredential };
    t.match((await takemark('verify', path)).out, line, 'the signer is printed with what is known of it');
  }
  const sidecar = await file('song.sidecar', Buffer.from('abc'));
  await takemark('verify', path, '--sidecar', sidecar);
  t.match(service.requests('/v1/verifications').at(-1)!.text, /name="sidecar"[\s\S]{1,90}\r\n\r\nabc\r\n--/);
});

t.test('a failure exits with 3 and one line with the request id', async (t) => {
  const { service, file, takemark, directory } = await setUp(t);
  const path = await file('song.wav');
  service.queue('/v1/verifications', {
    status: 403,
    body: { error: 'The key is missing, or is not valid for this action.', code: 'forbidden' },
  });
  const refused = await takemark('verify', path);
  t.match(refused, {
    code: 3,
    out: '',
    err: 'takemark: The key is missing, or is not valid for this action. (forbidden, request rq_1)\n',
  });
  service.queue('/v1/verifications', {
    status: 429,
    headers: { 'retry-after': '9999' },
    body: { error: 'No units left.', code: 'rate_limited', reason: 'quota_exceeded' },
  });
  t.match(await takemark('verify', path), {
    code: 3,
    err: /^takemark: No units left\. \(quota_exceeded, request rq_2\)\n$/,
  });
  t.match(await takemark('verify', join(directory, 'absent.wav'), '--json'), {
    code: 3,
    out: '',
    err: /absent\.wav: no such file or directory\n$/,
  });
  t.match(await (await setUp(t, { apiKey: undefined })).takemark('verify', path), {
    code: 2,
    err: /TAKEMARK_API_KEY/,
  });
  t.match(await (await setUp(t, { signal: AbortSignal.abort() })).takemark('verify', path), {
    code: 130,
    err: 'takemark: interrupted\n',
  });
});

t.test('the operator makes partners and keys, and issues', async (t) => {
  const { operator, takemark, file, directory } = await setUp(t);
  t.match(
    JSON.parse(
      (await takemark('operator', 'partner', 'create', 'Nord Licht', '--plan', 'volume', '--json')).out,
    ),
    { partnerId: 'ptr_1', name: 'Nord Licht', plan: 'volume' },
  );
  t.strictSame(
    JSON.parse(
      (await takemark('operator', 'key', 'create', '--partner', 'ptr_1', '--name', 'ingest', '--json')).out,
    ),
    { keyId: 'key_1', apiKey: 'tmk_secret', name: 'ingest' },
  );
  t.match(await takemark('operator', 'key', 'create', '--partner', 'ptr_1', '--name', 'ingest'), {
    code: 0,
    out: 'tmk_secret\n',
    err: /not shown again/,
  });
  t.match(await takemark('operator', 'authority'), { code: 0, out: /^-----BEGIN CERTIFICATE-----\n/ });

  const path = await file('Straße + Wege.wav');
  const out = join(directory, 'out.wav');
  operator.refusals = [503];
  const issued = await takemark(
    'operator',
    'issue',
    path,
    '--partner',
    'ptr_1',
    '--song',
    'Grüße & Küsse +1',
    '--artist',
    'Ada & Bo',
    '--release',
    'Early Trains',
    '--isrc',
    'DEA122600001',
    '--out',
    out,
    '--json',
  );
  t.match(issued, { code: 0, err: '' });
  t.match(JSON.parse(issued.out), { proofId: 'prf_1', issuedAt: 1_767_225_600, out });
  t.strictSame(await readFile(out), Buffer.concat([await readFile(path), Buffer.from('credential')]));
  const calls = operator.calls.filter((call) => call.path === '/operator/v1/proofs');
  t.equal(calls.length, 2, 'repeated under one key');
  t.equal(calls[0]!.headers['idempotency-key'], calls[1]!.headers['idempotency-key']);
  t.strictSame(Object.fromEntries(calls[1]!.query), {
    partnerId: 'ptr_1',
    song: 'Grüße & Küsse +1',
    artist: 'Ada & Bo',
    release: 'Early Trains',
    isrc: 'DEA122600001',
    fileName: 'Straße + Wege.wav',
    carrier: 'embedded',
  });
  t.equal(calls[1]!.headers['content-length'], '1044');

  const sidecarOut = join(directory, 'out.sidecar');
  t.match(
    await takemark(
      'operator',
      'issue',
      path,
      '--partner',
      'ptr_1',
      '--song',
      's',
      '--sidecar-out',
      sidecarOut,
      '--idempotency-key',
      'k'.repeat(16),
    ),
    { code: 0, out: /^prf_1 {2}issued 2026/ },
  );
  t.equal(await readFile(sidecarOut, 'utf8'), 'the sidecar');
  t.match(operator.calls.at(-2), { headers: { 'idempotency-key': 'k'.repeat(16) } });
  t.equal(operator.calls.at(-2)!.query.get('carrier'), 'sidecar');

  operator.refusals = [422];
  t.match(
    await takemark(
      'operator',
      'issue',
      path,
      '--partner',
      'ptr_1',
      '--song',
      's',
      '--out',
      join(directory, 'b.wav'),
    ),
    { code: 3, err: 'takemark: Refused for the test. (a_reason, request rq_double)\n' },
  );
  operator.refusals = [503, 503, 503];
  t.match(
    await takemark(
      'operator',
      'issue',
      path,
      '--partner',
      'ptr_1',
      '--song',
      's',
      '--out',
      join(directory, 'b.wav'),
    ),
    { code: 3, err: /run again with --idempotency-key [0-9a-f-]{36} \(a_reason, request rq_double\)\n$/ },
  );
  operator.damage = true;
  t.match(
    await takemark(
      'operator',
      'issue',
      path,
      '--partner',
      'ptr_1',
      '--song',
      's',
      '--out',
      join(directory, 'b.wav'),
    ),
    { code: 3, err: /prf_1 was issued but not written .* --idempotency-key [0-9a-f-]{36}\n$/ },
  );
  t.strictSame(
    (await readdir(directory)).sort(),
    ['Straße + Wege.wav', 'out.sidecar', 'out.wav'],
    'no half-written file is left',
  );
});

t.test('the doctor prints every check, and its exit code says whether one refuses', async (t) => {
  const { takemark } = await setUp(t);
  t.strictSame(await takemark('operator', 'doctor'), {
    code: 0,
    out: 'ok           kafka.topics: all\nwarn         cassandra.paxos_variant: v1\n             wanted: v2; slow\\u{7}\n',
    err: '',
  });
  const refusing = await setUp(t, { serversRefuse: true });
  const { code, out } = await refusing.takemark('operator', 'doctor', '--json');
  t.equal(code, 1);
  t.match(JSON.parse(out), {
    refused: 1,
    checks: [
      { name: 'kafka.topics', verdict: 'ok' },
      { name: 'cassandra.paxos_variant', verdict: 'refuse' },
    ],
  });
});

t.test('the operator prepares a cluster before it starts', async (t) => {
  const { takemark, directory } = await setUp(t);
  t.match(await takemark('operator', 'migrate'), {
    code: 0,
    out: 'applied 001-initial.cql\ncreated takemark.usage\n',
  });
  t.strictSame(JSON.parse((await takemark('operator', 'migrate', '--json')).out), {
    applied: ['001-initial.cql'],
    topics: ['takemark.usage'],
  });
  const out = join(directory, 'bundle.json');
  t.match(await takemark('operator', 'secrets', 'init', '--out', out), { code: 0, out: /bundle\.json/ });
  t.equal((await stat(out)).mode & 0o777, 0o600);
  t.match(
    await takemark('operator', 'secrets', 'init', '--out', out),
    { code: 2, err: /exists/ },
    'a bundle is never replaced',
  );

  const next = join(directory, 'next.json');
  t.match(
    await takemark(
      'operator',
      'secrets',
      'rotate',
      '--in',
      out,
      '--out',
      next,
      '--step',
      'add',
      '--purpose',
      'cursor,audit',
    ),
    { code: 0, out: /next\.json: deploy it to every process/ },
  );
  t.equal(await readFile(next, 'utf8'), '{} add false cursor+audit\n');
  t.equal((await stat(next)).mode & 0o777, 0o600);
  t.match(await takemark('operator', 'secrets', 'rotate', '--in', out, '--out', out, '--step', 'add'), {
    code: 2,
  });
});

t.test('the operator lists accounts, records and audit logs', async (t) => {
  const { operator, takemark } = await setUp(t);
  t.match(await takemark('operator', 'partner', 'list'), {
    code: 0,
    out: 'ptr_1  2026-01-01T00:00:00Z  Nord\\u{7}Licht (plan standard)\n',
  });
  t.match(JSON.parse((await takemark('operator', 'partner', 'list', '--json')).out), {
    partnerId: 'ptr_1',
    later: 1,
  });
  t.match(await takemark('operator', 'plan', 'list'), {
    code: 0,
    out: /^plan +units per month .*\n─.*\nstandard +100000 +50 +100 +8 +5\n$/,
  });
  t.match(await takemark('operator', 'key', 'list', '--partner', 'ptr_1'), {
    code: 0,
    out: 'key_1  expiring  ingest (plan standard)  until 2026-01-01T00:00:00Z\n',
  });
  await takemark(
    'operator',
    'key',
    'create',
    '--partner',
    'ptr_1',
    '--name',
    'n',
    '--scopes',
    'verify, usage',
  );
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), {
    name: 'n',
    scopes: ['verify', 'usage'],
  });
  operator.refusals = [503];
  t.match(await takemark('operator', 'key', 'revoke', 'key_1', '--partner', 'ptr_1'), {
    code: 0,
    out: /^key_1 {2}revoked /,
  });
  t.equal(operator.calls.at(-1)!.query.get('successors'), null);
  await takemark('operator', 'key', 'revoke', 'key_1', '--partner', 'ptr_1', '--successors');
  t.equal(operator.calls.at(-1)!.query.get('successors'), 'true');
  t.match(
    await takemark(
      'operator',
      'reviews',
      'list',
      '--partner',
      'ptr_1',
      '--status',
      'open',
      '--proof',
      'prf_1',
    ),
    {
      code: 0,
      out: 'rev_2  2026-01-02T00:00:00Z  open                prf_1\nrev_1  2026-01-01T00:00:00Z  open                prf_1\n',
    },
  );
  t.strictSame(
    operator.calls
      .slice(-2)
      .map(({ query }) => Object.fromEntries(query))
      .filter(({ limit }) => limit !== undefined),
    [
      { proofId: 'prf_1', status: 'open', limit: '100' },
      { proofId: 'prf_1', status: 'open', limit: '100', cursor: 'bmV4dA' },
    ],
    'all pages, with the filter',
  );
  t.match(JSON.parse((await takemark('operator', 'reviews', 'get', 'rev_1', '--json')).out), {
    partnerId: 'ptr_1',
  });
  t.match(await takemark('operator', 'reviews', 'get', 'rev_1'), {
    code: 0,
    out: /^review +rev_1\npartner +ptr_1\nproof +prf_1\n(?:.*\n)*req_1 {2}source_licence {2}supplied {2}2026-01-01T00:00:00Z\n$/,
  });
  t.match(await takemark('operator', 'reviews', 'list'), { code: 2 }, 'no partner is named');
  t.match(await takemark('operator', 'reviews', 'supply', 'rev_1', 'req_1'), {
    code: 0,
    out: 'rev_1  open  proof prf_1\n  req_1  supplied   source_evidence\n',
  });
  t.equal(operator.calls.at(-1)!.headers['content-type'], undefined, 'nothing is sent');
  t.match(await takemark('operator', 'erasure', 'status', 'prf_1'), {
    code: 0,
    out: 'prf_1  erased 2026-01-01T00:00:00Z, deliverable gone, confirmed 2026-01-01T00:00:01Z\n',
  });
  t.match(await takemark('operator', 'erasure', 'status', 'prf_left', '--json'), {
    code: 1,
    out: /"assetPresent":true/,
  });
  t.match(await takemark('operator', 'audit', 'read', 'ptr_1', '--from', '7', '--limit', '2'), {
    code: 0,
    out: '     7  2026-01-01T00:00:00Z  key_rotated               key_1  key_1 key_2\n',
  });
  t.strictSame(Object.fromEntries(operator.calls.at(-1)!.query), { from: '7', limit: '2' });
  t.match(await takemark('operator', 'audit', 'stores'), {
    code: 1,
    out: 'object_missing      prf_1  the deliverable is missing\n5 checked, 1 finding\n',
  });
  t.match(await takemark('operator', 'audit', 'stores', '--from', 'months'), {
    code: 0,
    out: '2 checked, 0 findings\n',
  });
  t.strictSame(
    (await takemark('operator', 'audit', 'stores', '--json')).out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { looked: number }).looked),
    [3, 2],
    'a line a step',
  );
  t.match(await takemark('operator', 'audit', 'verify', 'ptr_1'), {
    code: 0,
    out: '✔ SOUND  ptr_1  12 entries\n',
  });
  t.match(await takemark('operator', 'audit', 'verify', 'ptr_2'), {
    code: 1,
    out: '✘ NOT SOUND  ptr_2  truncated at entry 9\n',
  });
  t.match(
    await takemark('operator', 'audit', 'verify'),
    {
      code: 0,
      out: '✔ SOUND  ptr_1  12 entries\n✔ SOUND  signers  2 entries\n✔ SOUND  devices  3 entries\n✔ SOUND  plans  2 entries\n✔ SOUND  content-keys  1 entries\n✔ SOUND  dead-letters  1 entries\n',
    },
    'all partners and the logs of the service where none is named',
  );
  t.match(await takemark('operator', 'audit', 'verify', 'ptr_2', '--json'), {
    code: 1,
    out: /"reason":"truncated"/,
  });
  const kid = 'ab'.repeat(32);
  t.match(await takemark('operator', 'signing', 'list'), {
    code: 0,
    out: `${kid}  Ed25519  Takemark  until 2026-01-01T00:00:00Z  signs\n${kid}  Ed25519  Take\\u{7}proof  until 2026-01-01T00:00:00Z  verifies\n`,
  });
  operator.refusals = [503];
  t.match(
    await takemark(
      'operator',
      'signing',
      'revoke',
      '--kid',
      kid,
      '--from',
      '2026-01-01T00:00:00Z',
      '--reason',
      'key_compromise',
    ),
    { code: 0, out: /revoked from 2026-01-01T00:00:00Z, key_compromise\n$/ },
  );
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), {
    from: 1_767_225_600,
    reason: 'key_compromise',
  });
  t.match(
    await takemark(
      'operator',
      'signing',
      'revoke',
      '--kid',
      kid,
      '--from',
      'yesterday',
      '--reason',
      'superseded',
    ),
    { code: 2, err: /--from must be/ },
  );
  t.match(await takemark('operator', 'signing', 'revoke', '--kid', kid, '--from', '1', '--reason', 'bored'), {
    code: 2,
    err: /--reason .* one of unspecified/,
  });
  t.match(await takemark('operator', 'signing', 'reinstate', '--kid', kid), { code: 0, out: /verifies\n$/ });
  t.match(await takemark('operator', 'erasure', 'status', '..'), { code: 3, err: /an identifier must have/ });
});

t.test('a signing certificate comes from an authority that is elsewhere', async (t) => {
  const { takemark, directory } = await setUp(t);
  const [request, leaf] = [join(directory, 'request.pem'), join(directory, 'leaf.pem')];
  t.match(await takemark('authority', 'init', '--dir', 'safe'), { code: 0, out: 'safe\n' });
  t.match(await takemark('operator', 'signing', 'request', '--out', request), {
    code: 0,
    out: /^wrote .*request\.pem/,
  });
  t.match(await takemark('operator', 'signing', 'request', '--out', request), {
    code: 2,
    err: /exists; give --force/,
  });
  t.match(
    await takemark('authority', 'issue', '--dir', 'safe', '--request', request, '--out', request, '--force'),
    { code: 2, err: /is the input file/ },
  );
  t.match(
    await takemark(
      'authority',
      'issue',
      '--dir',
      'safe',
      '--request',
      request,
      '--out',
      leaf,
      '--days',
      '30',
    ),
    { code: 0, out: /^signed 'Takemark\\u\{7\}' \(Ed25519, ab\), 2026-01-01/ },
  );
  t.equal(await readFile(leaf, 'utf8'), 'a request by safe for 30\n');
  t.match(await takemark('operator', 'signing', 'install', '--certificate', leaf), {
    code: 0,
    out: /^installed a request by safe for 30, valid until 2026-01-01T00:00:00Z; ff still verifies/,
  });
  t.match(await takemark('operator', 'signing', 'install', '--certificate', leaf, '--json'), {
    code: 0,
    out: /"former":"ff"/,
  });
});

t.test('the operator records and lists declarations', async (t) => {
  const { operator, takemark, file } = await setUp(t);
  const submission = {
    surveyVersion: '1',
    submissionId: 'sub_1',
    subject: 'creator_1',
    submittedAt: 1_767_225_600,
    answers: { manualWork: 'entire', aiShareBand: 'none' },
  };
  const answers = await file('answers.json', Buffer.from(JSON.stringify(submission)));
  operator.refusals = [503];
  t.match(await takemark('operator', 'declaration', 'record', '--proof', 'prf_1', '--file', answers), {
    code: 0,
    out: 'sub_1  2026-01-01T00:00:00Z  creator_1  manualWork=entire aiShareBand=none\n',
    err: '',
  });
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), submission);
  t.equal(operator.calls.length, 2, 'repeated, because it is safe to');
  t.match(
    JSON.parse(
      (await takemark('operator', 'declaration', 'record', '--proof', 'prf_1', '--file', answers, '--json'))
        .out,
    ),
    { submissionId: 'sub_1', bindingStatus: 'authenticated_post_issuance_record' },
  );
  const calls = operator.calls.length;
  for (const [text, err] of [
    ['{', /is not JSON/],
    ['[]', /does not hold a JSON object/],
    [' '.repeat(65_537), /is larger than/],
  ] as const) {
    t.match(
      await takemark(
        'operator',
        'declaration',
        'record',
        '--proof',
        'prf_1',
        '--file',
        await file('broken.json', Buffer.from(text)),
      ),
      { code: 3, out: '', err },
    );
  }
  t.match(
    await takemark('operator', 'declaration', 'record', '--proof', 'prf_1', '--file', `${answers}.none`),
    { code: 3, err: /no such file or directory/ },
  );
  t.equal(operator.calls.length, calls, 'nothing was sent');
  operator.refusals = [409];
  t.match(await takemark('operator', 'declaration', 'record', '--proof', 'prf_1', '--file', answers), {
    code: 3,
    err: /a_reason/,
  });
  t.match(await takemark('operator', 'declaration', 'list', '--proof', 'prf_1'), {
    code: 0,
    out: /^sub_1 .* aiShareBand=none\n$/,
  });
  t.match(await takemark('operator', 'declaration', 'list', '--proof', 'prf_left'), {
    code: 1,
    out: /sub_2 .* {2}ALTERED\n$/,
  });
  t.match(await takemark('operator', 'declaration', 'list', '--proof', 'prf_left', '--json'), {
    code: 1,
    out: /"authentic":false/,
  });
});

t.test('a partner lists proofs and keys, rotates and revokes, and sees its usage', async (t) => {
  const { service, directory, takemark } = await setUp(t);
  service.on('/v1/proofs', ({ query }) => ({
    status: 200,
    body: {
      proofs: [
        {
          proofId: `prf_${query.cursor ?? 0}`,
          issuedAt: 1_767_225_600,
          carrier: 'sidecar',
          song: { title: 'Gr\u001büße' },
        },
      ],
      ...(query.cursor === undefined ? { nextCursor: '1' } : {}),
    },
  }));
  t.match(await takemark('proofs', 'list', '--issued-after', '5'), {
    code: 0,
    out: /^prf_0 {2}2026-01-01T00:00:00Z {2}sidecar {3}Gr\\u\{1b\}üße\nprf_1 .*\n$/,
  });
  t.equal((await takemark('proofs', 'list', '--json')).out.split('\n').length, 3);
  service.on('/v1/partner/keys', () => ({
    status: 200,
    body: {
      keys: [{ keyId: 'key_1', status: 'active', name: 'ingest', plan: 'volume', lastUsedAt: 1_767_225_600 }],
    },
  }));
  t.match(await takemark('keys', 'list'), {
    code: 0,
    out: 'key_1  active    ingest (plan volume)  last used 2026-01-01T00:00:00Z\n',
  });
  service.on('/v1/partner/keys/key_1', ({ method }) => ({
    status: 200,
    body: {
      keyId: 'key_1',
      status: method === 'DELETE' ? 'revoked' : 'active',
      name: 'ingest',
      plan: 'volume',
    },
  }));
  t.match(await takemark('keys', 'revoke', 'key_1'), {
    code: 0,
    out: 'key_1  revoked   ingest (plan volume)\n',
  });
  service.on('/v1/partner/usage', () => ({
    status: 200,
    body: {
      plan: 'volume',
      period: { start: 0, end: 1_769_904_000 },
      limit: 10,
      used: 4,
      remaining: 6,
      days: [
        { day: '2025-12-31', units: 0, operations: {} },
        { day: '2026-01-01', units: 4, operations: { verify: 4, list_proofs: 2 } },
      ],
    },
  }));
  t.match(await takemark('usage', '--days', '1'), {
    code: 0,
    out: /^plan volume: 4 of 10 units used, 6 left until 2026-02-01T00:00:00Z\nday .*\n─.*\n2026-01-01 +4 +verify 4, list_proofs 2\n$/,
  });
  t.equal(service.seen.at(-1)!.query.days, '1');

  const state = join(directory, 'rotation.json');
  const answer = { apiKey: 'tmk_new', keyId: 'key_2', name: 'ingest', previousKeyExpiresAt: 1_767_225_600 };
  // Refused for good, after the state was saved: a kill between the two leaves the same.
  service.queue(
    '/v1/partner/keys/rotate',
    { status: 500 },
    { status: 500 },
    { status: 500 },
    { status: 500 },
  );
  t.match(await takemark('keys', 'rotate', '--state', state), { code: 3, out: '' });
  const pending = JSON.parse(await readFile(state, 'utf8')) as { idempotencyKey: string };
  service.on('/v1/partner/keys/rotate', () => ({ status: 201, body: answer }));
  t.match(await takemark('keys', 'rotate', '--state', state), {
    code: 0,
    out: 'tmk_new\n',
    err: 'key_2  ingest. The old key works until 2026-01-01T00:00:00Z.\n',
  });
  t.ok(
    service
      .requests('/v1/partner/keys/rotate')
      .every(({ headers }) => headers['idempotency-key'] === pending.idempotencyKey),
  );
  t.equal((await stat(state)).mode & 0o777, 0o600);
  const before = service.seen.length;
  t.match(JSON.parse((await takemark('keys', 'rotate', '--state', state, '--json')).out), {
    ...answer,
    replayed: true,
  });
  t.equal(service.seen.length, before);
  await writeFile(state, '{"something":"else"}');
  t.match(await takemark('keys', 'rotate', '--state', state), {
    code: 2,
    err: /does not hold a key rotation/,
  });
  t.equal(await readFile(state, 'utf8'), '{"something":"else"}');
  t.strictSame((await readdir(directory)).sort(), ['rotation.json']);
});

t.test(
  'the operator token comes from the environment or from the data directory of this machine',
  async (t) => {
    const bench = await setUp(t, { operatorToken: undefined });
    t.match(await bench.takemark('operator', 'authority'), { code: 2, err: /TAKEMARK_OPERATOR_TOKEN/ });
    await bench.file('operator-token', Buffer.from(`${bench.operator.token}\n`));
    t.match(await bench.takemark('operator', 'authority'), { code: 0 });
    await bench.file('operator-token', Buffer.from('another-token'));
    t.match(await bench.takemark('operator', 'authority'), {
      code: 3,
      err: /does not know the operator token/,
    });
    const remote = await setUp(t, { operatorToken: undefined, operatorUrl: 'http://operator.example:8081' });
    await remote.file('operator-token', Buffer.from('secret'));
    t.match(
      await remote.takemark('operator', 'authority'),
      { code: 2, err: /another machine/ },
      'a local token is not sent elsewhere',
    );
  },
);

t.test('an output is whole, new, and never an input', async (t) => {
  const { takemark, file, directory, operator } = await setUp(t);
  const path = await file('a.wav');
  const before = await readFile(path);
  const other = await file('b.wav', Buffer.from('mine'));
  const base = ['operator', 'issue', path, '--partner', 'ptr_1', '--song', 's'];
  t.match(await takemark(...base, '--out', other), { code: 2, err: /exists; give --force/ });
  t.match(await takemark(...base, '--out', path, '--force'), { code: 2, err: /is the input file/ });
  t.match(await takemark(...base, '--out', join(directory, '.', 'sub', '..', 'a.wav'), '--force'), {
    code: 2,
  });
  t.match(await takemark(...base, '--out', directory, '--force'), { code: 2, err: /not a regular file/ });
  t.match(await takemark(...base, '--out', join(directory, 'absent', 'x.wav')), {
    code: 2,
    err: /directory of .* does not exist/,
  });
  t.match(await takemark(...base, '--out', join(directory, 'x'), '--sidecar-out', join(directory, 'x')), {
    code: 2,
    err: /same file/,
  });
  t.equal(operator.calls.length, 0, 'nothing was issued for nothing');
  t.match(await takemark(...base, '--out', other, '--force'), { code: 0 });
  t.equal((await readFile(other)).length, before.length + 10);
  t.strictSame(await readFile(path), before);

  const sealed = join(directory, 'sealed.wav');
  t.match(await takemark('seal', path, '--out', sealed, '--device-dir', 'dir', '--json'), {
    code: 0,
    out: /"device":"device in dir"/,
  });
  t.strictSame(await readFile(sealed), Buffer.concat([before, Buffer.from('seal')]));
  t.match(
    await takemark(
      'seal',
      path,
      '--out',
      join(directory, 'copy.wav'),
      '--sidecar-out',
      join(directory, 'c.sidecar'),
    ),
    { code: 0, out: /^sealed 2026-01-01/ },
  );
  t.strictSame(await readFile(join(directory, 'copy.wav')), before);
  t.equal(await readFile(join(directory, 'c.sidecar'), 'utf8'), 'a sidecar');
  t.match(await takemark('seal', join(directory, 'absent.wav'), '--out', join(directory, 'n.wav')), {
    code: 3,
    err: /no such file or directory/,
  });
});

t.test('--mend lists each changed byte, the warnings and the two digests', async (t) => {
  const { takemark, file, directory, operator } = await setUp(t);
  const path = await file('a.wav');
  const before = await readFile(path);
  const base = ['operator', 'issue', path, '--partner', 'ptr_1', '--song', 's', '--mend'];
  t.match(await takemark(...base, '--sidecar-out', join(directory, 'a.sidecar')), {
    code: 2,
    err: /--mend repairs a file that will contain its credential/,
  });
  t.match(await takemark(...base, '--out', path, '--force'), { code: 2, err: /is the input file/ });
  t.equal(operator.calls.length, 0);
  const { code, out } = await takemark(...base, '--out', join(directory, 'out.wav'));
  t.equal(code, 0);
  t.strictSame(out.split('\n').slice(1), [
    'mended: byte 4, 0xb5 to 0xb4',
    'mended: appended byte 443, 0x00',
    `mended: the original is the mended file, SHA-256 ${createHash('sha256')
      .update(await readFile(join(directory, 'out.wav')))
      .digest('hex')}; the sent file has ${'a'.repeat(64)}`,
    'warning: list_malformed at byte 36',
    '',
  ]);
  t.equal(operator.calls[0]!.query.get('mend'), 'true');
  t.strictSame(await readFile(path), before, 'the input stays as it was');
});

t.test('an interrupted issuing says how it is taken up again, and issues once', async (t) => {
  const words = (path: string) => ['operator', 'issue', path, '--partner', 'ptr_1', '--song', 'S'];
  for (const [ending, message] of [
    ['/proofs', /^takemark: to avoid issuing it twice, run again with --idempotency-key [0-9a-f-]{36}\n/],
    [
      '/asset',
      /^takemark: prf_1 was issued but not written \(.*\); run again with --idempotency-key [0-9a-f-]{36}\n/,
    ],
  ] as const) {
    const interruption = new AbortController();
    const { operator, takemark, file, directory } = await setUp(t, { signal: interruption.signal });
    const { calls } = operator;
    calls.push = (...seen) => {
      if (seen[0]!.path.endsWith(ending)) interruption.abort(new Error('SIGINT'));
      return Array.prototype.push.apply(calls, seen);
    };
    const out = join(directory, 'out.wav');
    const { code, err } = await takemark(...words(await file('take.wav')), '--out', out);
    t.equal(code, 130, ending);
    t.match(err, message, ending);
    t.match(err, /\ntakemark: interrupted\n$/, ending);
    t.notOk((await readdir(directory)).includes('out.wav'), ending);
  }
});

t.test('the program exits by its codes and shows no stack', async (t) => {
  const { directory } = await setUp(t);
  await mkdir(join(directory, 'empty'));
  const start = (...words: string[]) =>
    spawn(process.execPath, [MAIN, ...words], {
      cwd: join(directory, 'empty'),
      env: { TAKEMARK_URL: 'http://127.0.0.1:1', TAKEMARK_API_KEY: 'k' },
    });
  const help = start('--help');
  t.match(await text(help.stdout), /Usage/);
  t.equal(help.exitCode ?? (await once(help, 'exit'))[0], 0);
  const trouble = start('verify', MAIN);
  const [err, [code]] = await Promise.all([text(trouble.stderr), once(trouble, 'exit')]);
  t.equal(code, 3);
  t.match(err, /^takemark: no answer from the service at http:\/\/127\.0\.0\.1:1: .*\n$/);
});

t.test('a closed pipe ends the program in good order, and never as if every file were good', async (t) => {
  const { service, file, directory } = await setUp(t);
  service.verdict = { verdict: 'unreadable', good: false };
  for (let at = 0; at < 30; at += 1) await file(`delivery/${at}.wav`);
  const start = (...words: string[]) =>
    spawn(process.execPath, [MAIN, 'verify', ...words], {
      cwd: directory,
      env: { TAKEMARK_URL: service.url, TAKEMARK_API_KEY: 'k' },
    });
  const unread = start('delivery', '--concurrency', '1', '--format', 'jsonl');
  unread.stdout.once('data', () => unread.stdout.destroy());
  const [err, [code]] = await Promise.all([text(unread.stderr), once(unread, 'exit')]);
  t.equal(code, 141, 'files that were not judged are not good');
  t.match(err, /^\d+ files?: 0 good, \d+ not good, 0 failed\n$/);

  const unheard = start('delivery', 'nothing.wav');
  unheard.stderr.destroy();
  const [out, [failed]] = await Promise.all([text(unheard.stdout), once(unheard, 'exit')]);
  t.equal(failed, 3, 'the code of the files, also without a reader of the notes');
  t.match(out, /FAILED .* nothing\.wav/);
});

t.test('the demo shows all six verdicts on the real service', async (t) => {
  const { directory } = await setUp(t);
  const keep = join(directory, 'kept');
  const demo = spawn(process.execPath, [MAIN, 'demo', '--json', '--keep', keep], { env: {} });
  const [out, err, [code]] = await Promise.all([text(demo.stdout), text(demo.stderr), once(demo, 'exit')]);
  t.match({ code, err }, { code: 0, err: '' });
  const rows = out
    .trim()
    .split('\n')
    .map(
      (line) =>
        JSON.parse(line) as { expected: string; got: string; asExpected: boolean } & Partial<ShownProduction>,
    );
  const productions = rows.splice(-2);
  t.ok(
    rows.every((row) => row.asExpected && row.expected === row.got),
    out,
  );
  t.match(productions, [
    { name: 'clean', status: 'verified_binding', conflicts: 0, asExpected: true },
    { name: 'adverse', status: 'needs_review', asExpected: true },
  ]);
  t.strictSame([...new Set(rows.map((row) => row.got))].sort(), [
    'audioChanged',
    'local_seal',
    'tampered',
    'unreadable',
    'unregistered',
    'valid',
  ]);
  const kept = await readdir(keep);
  const { takemark } = await setUp(t);
  t.match(
    await takemark('demo', '--keep', keep),
    { code: 2, err: /is not empty/ },
    'no file that is there is replaced',
  );
  t.ok(['sealed.wav', 'clean.html', 'adverse.html'].every((name) => kept.includes(name)));
});

t.test('the recording of the demo is a real one', async (t) => {
  const recording = renderRecording(2);
  const asWav = broadcastWave(recording, 'Title');
  const asAiff = aiff(recording);
  for (const [bytes, type, container] of [
    [asWav, 'audio/wav', 'WAVE'],
    [asAiff, 'audio/aiff', 'AIFF'],
  ] as const) {
    const { format } = await parseBuffer(bytes, { mimeType: type });
    t.match(format, { container, sampleRate: 44_100, numberOfChannels: 2, bitsPerSample: 16, duration: 2 });
  }
  t.equal(asWav.readUInt32LE(4) + 8, asWav.length);
  t.equal(asAiff.readUInt32BE(4) + 8, asAiff.length);
  t.ok(
    recording.left.some((value) => Math.abs(value) > 0.3) &&
      recording.left.every((value) => Math.abs(value) <= 0.86),
    'heard, and not clipped',
  );
});

t.test('the operator enrols devices by their public key, and revokes them', async (t) => {
  const { takemark, operator } = await setUp(t);
  const directory = t.testdir();
  for (const [algorithm, { publicKey, privateKey }] of [
    ['Ed25519', generateKeyPairSync('ed25519')],
    ['ES256', generateKeyPairSync('ec', { namedCurve: 'prime256v1' })],
  ] as const) {
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const deviceId = createHash('sha256').update(spki).digest('hex');
    for (const [name, bytes] of [
      ['device.pem', publicKey.export({ type: 'spki', format: 'pem' })],
      ['device.der', spki],
    ] as const) {
      const path = join(directory, name);
      await writeFile(path, bytes);
      t.match(await takemark('operator', 'devices', 'enrol', '--key', path), {
        code: 0,
        out: new RegExp(`^${deviceId}  ${algorithm} .*  enrolled\n`),
      });
      t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), { deviceId, algorithm });
    }
    const path = join(directory, 'private.pem');
    await writeFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    t.match(await takemark('operator', 'devices', 'enrol', '--key', path), { code: 3 }, 'no private key');
  }
  const deviceId = 'ab'.repeat(32);
  t.match(await takemark('operator', 'devices', 'enrol', '--device', deviceId, '--json'), { code: 0 });
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), { deviceId });
  const before = operator.calls.length;
  for (const words of [[], ['--device', 'studio'], ['--device', deviceId, '--key', 'x.pem']])
    t.match(await takemark('operator', 'devices', 'enrol', ...words), { code: 2 }, words.join(' '));
  t.equal(operator.calls.length, before, 'nothing was asked');

  const { out } = await takemark('operator', 'devices', 'list');
  t.match(out, / {2}enrolled\n.* {2}revoked from 2026-01-01T00:00:00Z\n$/);
  const revoke = ['operator', 'devices', 'revoke', '--device', deviceId];
  t.match(await takemark(...revoke, '--from', '2026-01-01T00:00:00Z'), {
    code: 0,
    out: /revoked from 2026-01-01T00:00:00Z/,
  });
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), { from: 1_767_225_600 });
  t.match(await takemark(...revoke, '--from', 'yesterday'), { code: 2 });
});

t.test('the operator makes plans, changes their limits, and gives them to partners', async (t) => {
  const { operator, takemark } = await setUp(t);
  const plan = (...words: string[]) => takemark('operator', 'plan', ...words);
  const sent = () => JSON.parse(operator.calls.at(-1)!.body.toString()) as unknown;
  const limits = ['--monthly-quota', '7000', '--requests-per-second', '9', '--burst', '20'];
  t.match(await plan('create', 'label', ...limits, '--concurrent-uploads', '3'), {
    code: 0,
    out: /\nlabel +7000 +9 +20 +3 +5\n$/,
  });
  t.strictSame(sent(), {
    name: 'label',
    monthlyQuota: 7000,
    requestsPerSecond: 9,
    burst: 20,
    concurrentUploads: 3,
    rotationsPerDay: 5,
  });
  t.match(await plan('create', 'label', ...limits), { code: 2 }, 'a limit lacks');

  const changed = {
    monthlyQuota: 200_000,
    requestsPerSecond: 50,
    burst: 100,
    concurrentUploads: 8,
    rotationsPerDay: 5,
  };
  t.match(await plan('set', 'standard', '--monthly-quota', '200000'), {
    code: 0,
    out: /\nstandard +200000 +50 +100 +8 +5\n$/,
  });
  t.strictSame(
    sent(),
    { ...changed, effect: 'at_once' },
    'what was not named stays, and what is not known is not sent',
  );
  t.match(await plan('set', 'standard', '--monthly-quota', '200000', '--next-month'), {
    code: 0,
    out: /\nstandard +100000 +50 +100 +8 +5\nfrom 2026-02-01T00:00:00Z +200000 +50 +100 +8 +5\n$/,
  });
  t.match(sent(), { effect: 'next_month' });
  t.match(JSON.parse((await plan('set', 'standard', '--burst', '7', '--json')).out), { burst: 7 });
  t.match(await plan('set', 'none', '--burst', '7'), { code: 3, err: /no such plan: none/ });
  const before = operator.calls.length;
  t.match(await plan('set', 'standard'), { code: 2, err: /give at least one limit/ });
  t.match(await plan('set', 'standard', '--burst', '0'), { code: 2 });
  t.match(await plan('assign', 'volume'), { code: 2 }, 'whose it becomes is not named');
  t.equal(operator.calls.length, before, 'nothing was asked');

  t.match(await plan('assign', 'volume', '--partner', 'ptr_1'), { code: 0, out: 'ptr_1  N (plan volume)\n' });
  t.strictSame(sent(), { plan: 'volume', effect: 'at_once' });
  t.match(await plan('assign', 'volume', '--partner', 'ptr_1', '--next-month'), {
    code: 0,
    out: 'ptr_1  N (plan standard, volume from 2026-02-01T00:00:00Z)\n',
  });
  t.match(JSON.parse((await plan('assign', 'volume', '--partner', 'ptr_1', '--json')).out), {
    plan: 'volume',
  });
});

t.test('the operator approves partners for source detail, and records consent', async (t) => {
  const { takemark, operator } = await setUp(t);
  const detail = (...words: string[]) =>
    takemark('operator', 'source-detail', ...words, '--partner', 'ptr_1');
  t.match(await detail('approve', '--consent-version', '2026-01'), {
    code: 0,
    out: 'ptr_1  source detail under consent 2026-01, since 2026-01-01T00:00:00Z\n',
  });
  t.match(await detail('withdraw'), { code: 0, out: 'ptr_1  no source detail\n' });
  t.match(await detail('approve'), { code: 2 }, 'no version');
  const consent = (...words: string[]) => takemark('operator', 'consent', ...words, '--proof', 'prf_1');
  const at = ['--consent-version', '2026-01', '--at', '2026-01-01T00:00:00Z'];
  t.match(await consent('grant', ...at), {
    code: 0,
    out: 'prf_1  consent 2026-01, granted 2026-01-01T00:00:00Z\n',
  });
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), {
    consentVersion: '2026-01',
    grantedAt: 1_767_225_600,
  });
  const revoked = await consent('revoke', '--json');
  t.match(revoked, { code: 0, out: '{"proofId":"prf_1"}\n' });
  t.match(await consent('grant', '--consent-version', '2026-01', '--at', 'never'), { code: 2 });
});

t.test('the operator replays dead letters and erasures', async (t) => {
  const { takemark, operator } = await setUp(t);
  const listed = await takemark('operator', 'dlq', 'list', '--topic', 'usage', '--limit', '5');
  t.match(listed, {
    code: 0,
    out: /^usage +0\/17 +2026-01-01T00:00:00Z +the span is empty +units_counted\/ptr_1\/x\/4\n/,
  });
  t.notMatch(listed.out, /\u0007/);
  t.strictSame(
    [operator.calls.at(-1)?.query.get('topic'), operator.calls.at(-1)?.query.get('limit')],
    ['usage', '5'],
  );
  const lines = (await takemark('operator', 'dlq', 'list', '--json')).out.trim().split('\n');
  t.match(JSON.parse(lines[0]!), { topic: 'usage', position: '0/17' });
  t.equal(operator.calls.at(-1)?.query.get('topic'), null);
  t.match(await takemark('operator', 'dlq', 'replay', '--topic', 'usage'), { code: 0, out: '2 replayed\n' });
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), { topic: 'usage', limit: 1000 });
  const discarded = await takemark('operator', 'dlq', 'discard', '--topic', 'usage');
  t.match(discarded, { code: 0, out: /^usage +0\/18 +2026-01-01T00:00:00Z +not.* an event\n$/ });
  t.notMatch(discarded.out, /\u0007/);
  t.strictSame(JSON.parse(operator.calls.at(-1)!.body.toString()), { topic: 'usage', limit: 1 });
  t.match(await takemark('operator', 'restore'), {
    code: 0,
    out: '7 erasures compared with the store, 14 per second; 2 erased again\n30 usage counts compared with the store; epoch 3 has begun\n',
  });
  t.match(await takemark('operator', 'backup', '--out', 'copy'), {
    code: 0,
    out: 'wrote copy: 3 rows, 2 files, 4 bytes\n',
    err: /is on the disk of the data directory/,
  });
  t.equal(operator.calls.at(-1)?.path, '/operator/v1/snapshot');
  t.match(await takemark('operator', 'restore', '--from', 'copy'), { code: 3, err: /there is no journal/ });
  t.match(await takemark('operator', 'restore', '--from', 'copy', '--accept-lost-journals'), {
    code: 0,
    out: /from the backup of 2026-01-01T00:00:00Z: 3 rows, 2 files, 4 bytes\n/,
  });
  t.match(await takemark('operator', 'restore', '--accept-lost-journals'), { code: 2 });
  t.match(await takemark('operator', 'erasure', 'status', 'prf_1'), {
    out: /deliverable gone, confirmed 2026-01-01T00:00:01Z/,
  });
});

t.test('long-running commands run until they are interrupted, and stop in good order', async (t) => {
  const interruption = new AbortController();
  const { takemark, stopped } = await setUp(t, { signal: interruption.signal });
  const both = [takemark('serve'), takemark('consumers')];
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.strictSame(stopped, []);
  interruption.abort();
  t.strictSame(await Promise.all(both), [
    { code: 0, out: '', err: 'serving\n' },
    { code: 0, out: '', err: 'consuming\n' },
  ]);
  t.strictSame([...stopped].sort(), ['consumers', 'service']);
});
