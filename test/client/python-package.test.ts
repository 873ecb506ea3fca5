/** The Python package of deploy/python: its generated modules, its calls, and what it does with odd responses. */
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openApiDocument } from '../../src/service/contract/openapi.js';
import { ROOT } from '../docs/pages.js';
import { runProgram, startProxy } from '../docs/run-program.js';
import { TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { noise, wav } from '../fixtures/wav.js';
import { ServiceDouble } from './service-double.js';

const PACKAGE = join(ROOT, 'deploy/python');
const skip = needs('python3');
/** Calls are signed with a package that not every machine has. */
const signingSkip =
  skip ||
  (spawnSync('python3', ['-c', 'import cryptography'], { stdio: 'ignore' }).status !== 0 &&
    'the Python package cryptography is not installed');

/** Runs a program in `directory`, and returns what it printed. */
async function python(
  t: Test,
  {
    program,
    url,
    directory,
    apiKey = 'tmk_key',
  }: Readonly<Record<'program' | 'url' | 'directory', string>> & {
    readonly apiKey?: string;
  },
): Promise<string> {
  const proxy = await startProxy(t);
  await writeFile(join(directory, 'program.py'), program);
  const { code, out, err } = await runProgram('sh', ['-c', 'cd "$0" && exec python3 program.py', directory], {
    ...proxy.environment,
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONPATH: PACKAGE,
    TAKEMARK_URL: url,
    TAKEMARK_API_KEY: apiKey,
  });
  t.strictSame([code, err, proxy.connections()], [0, '', 0], 'no proxy sees the key');
  return out;
}

const START = `
import io, json, logging, os, sys
from takemark import Client, TakemarkError

def client(**options):
    return Client(os.environ["TAKEMARK_URL"], os.environ["TAKEMARK_API_KEY"], **options)

def failure(call, *arguments, **options):
    try:
        return ["no error", call(*arguments, **options)]
    except TakemarkError as error:
        return [error.code, error.status, error.retry_after]
`;

t.test('the generated modules are those of the OpenAPI document', async (t) => {
  const script = new URL('../../../deploy/openapi/python-package.mjs', import.meta.url);
  const { pythonModules } = (await import(script.href)) as {
    pythonModules(document: ReturnType<typeof openApiDocument>): Record<string, string>;
  };
  for (const [name, text] of Object.entries(pythonModules(openApiDocument())))
    t.ok(
      text === (await readFile(join(PACKAGE, 'takemark', name), 'utf8')),
      `${name}, after a change of the contract: npm run build:openapi`,
    );
});

t.test('each call of the Python package works with the service', { skip }, async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId, apiKey } = await service.partner();
  const { file, proofId } = await service.issue(partnerId, wav(96_000));
  const mp3 = Buffer.concat([Buffer.from('fffb9064', 'hex'), noise(300_000)]);
  const pair = await service.issue(partnerId, mp3, { carrier: 'sidecar', fileName: 'song.mp3' });
  const directory = t.testdir();
  const altered = Buffer.from(file);
  altered[altered.length - 1000]! ^= 1;
  for (const [name, bytes] of Object.entries({
    'song.wav': file,
    'altered.wav': altered,
    'song.mp3': pair.file,
    'song.sidecar': pair.sidecar!,
  }))
    await writeFile(join(directory, name), bytes);
  const program = `${START}
takemark = client()
found = {}
found["verified"] = [
    (result["verdict"], result["accepted"], result["proofId"])
    for result in (
        takemark.verify_file("song.wav"),
        takemark.verify_file(open("song.wav", "rb").read()),
        takemark.verify_file(open("song.wav", "rb")),
        takemark.verify_file("song.mp3", sidecar="song.sidecar"),
        takemark.verify({"uploadId": takemark.upload_file("song.wav")["uploadId"]}),
    )
]
altered = takemark.verify_file("altered.wav")
found["altered"] = (altered["verdict"], altered["accepted"])
found["matches"] = [match["type"] for match in takemark.identify_file("song.wav")["matches"]]
found["proofs"] = [proof["proofId"] for proof in takemark.list_proofs()]
first = takemark.list_proofs_page(limit=1)
second = takemark.list_proofs_page(limit=1, cursor=first["nextCursor"])
found["pages"] = [proof["proofId"] for proof in first["proofs"] + second["proofs"]]
proof = found["verified"][0][2]
found["title"] = takemark.read_record(proof)["song"]["title"]
found["digests"] = [
    takemark.download_asset(proof, "asset.wav"),
    takemark.download_asset(found["verified"][3][2], "asset.sidecar", part="sidecar"),
]
bindings = {name: "a-1" for name in ("creatorId", "accountId", "submissionId", "trackId")}
case = {"proofId": proof, "bindings": bindings}
reviews = [takemark.create_review(case, idempotency_key="appeal-of-this-test")["reviewId"] for _ in "12"]
try:
    takemark.create_review(case)
except TakemarkError as error:
    found["exists"] = (error.status, error.reason, error.review_id == reviews[0], error.request_id is not None)
asked = takemark.open_evidence(reviews[0], {"kind": "source_evidence"})
request = asked["evidenceRequests"][0]["requestId"]
takemark.close_evidence(reviews[0], request, {"status": "accepted", "responseReference": "case/1"})
takemark.resolve_review(reviews[0], {"outcome": "held"})
found["reviews"] = [(review["reviewId"] == reviews[1], review["outcome"]) for review in takemark.list_reviews()]
fixtures = takemark.sandbox_fixtures()["fixtures"]
found["fixture"] = len(takemark.download_fixture(fixtures[0]["name"], "fixture"))
found["limit"] = takemark.read_usage(days=1)["limits"]["burst"] > 0
found["health"] = takemark.health()["ok"]
rotated = [client().rotate_key("rotation.json")["apiKey"] for _ in "12"]
fresh = Client(os.environ["TAKEMARK_URL"] + "/v1/", rotated[0])
found["keys"] = (rotated[0] == rotated[1], sorted(key["status"] for key in fresh.list_keys()))
found["erased"] = [fresh.erase_proof(proof)["outcome"] for _ in "12"]
found["missing"] = failure(fresh.read_record, proof)
print(json.dumps(found))
`;
  const found = JSON.parse(
    await python(t, { program, url: service.partnerUrl, directory, apiKey }),
  ) as Record<string, unknown>;
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
  t.strictSame(found, {
    verified: [
      ['valid', true, proofId],
      ['valid', true, proofId],
      ['valid', true, proofId],
      ['valid', true, pair.proofId],
      ['valid', true, proofId],
    ],
    altered: ['tampered', false],
    matches: ['exact_file'],
    proofs: [pair.proofId, proofId],
    pages: [pair.proofId, proofId],
    title: 'Take one',
    digests: [digest(file), digest(pair.sidecar!)],
    exists: [409, 'review_exists', true, true],
    reviews: [[true, 'held']],
    fixture: 64,
    limit: true,
    health: true,
    keys: [true, ['active', 'expiring']],
    erased: ['erased', 'already_erased'],
    missing: ['not_found', 404, null],
  });
  t.strictSame(await readFile(join(directory, 'asset.wav')), file);
  t.equal((await stat(join(directory, 'rotation.json'))).mode & 0o777, 0o600);
});

async function double(t: Test): Promise<{ readonly service: ServiceDouble; readonly directory: string }> {
  const service = await new ServiceDouble().start();
  t.teardown(() => service.stop());
  const directory = t.testdir();
  await writeFile(join(directory, 'song.wav'), wav(48_000));
  return { service, directory };
}

const busy = (status: number, seconds: number) => ({
  status,
  headers: { 'Retry-After': `${seconds}` },
  body: { error: 'Later.', code: status === 429 ? 'rate_limited' : 'unavailable' },
});

t.test('a call is repeated only if it had no effect or is safe to repeat', { skip }, async (t) => {
  const { service, directory } = await double(t);
  service.queue('/v1/verifications', busy(429, 1), busy(503, 0), { status: 0, drop: true });
  service.queue('/uploads', busy(503, 0));
  service.queue('/v1/recordings/identify', busy(503, 0));
  service.queue('/v1/partner/reviews', busy(429, 0), busy(503, 0), busy(503, 0), { status: 201, body: {} });
  service.queue('/v1/health', busy(503, 31), ...Array.from({ length: 4 }, () => busy(503, 0)));
  const program = `${START}
takemark = client()
case = {"proofId": "prf_1", "bindings": {}}
print(json.dumps([
    takemark.verify_file("song.wav")["accepted"],
    takemark.upload_file("song.wav")["uploadId"],
    failure(takemark.identify, {"uploadId": "upl_1"}),
    failure(takemark.create_review, case),
    takemark.create_review(case, idempotency_key="an-appeal-of-this-test"),
    failure(takemark.health),
    failure(takemark.health),
]))
`;
  t.strictSame(JSON.parse(await python(t, { program, url: service.url, directory })), [
    true,
    'upl_2',
    ['unavailable', 503, 0],
    ['unavailable', 503, 0],
    {},
    ['unavailable', 503, 31],
    ['unavailable', 503, 0],
  ]);
  const verified = service.requests('/v1/verifications');
  t.equal(verified.length, 4);
  t.ok(verified[1]!.at - verified[0]!.at >= 990, 'Retry-After is obeyed');
  const digest = createHash('sha256').update(wav(48_000)).digest('hex');
  // The double breaks the third connection before it reads the form.
  t.strictSame(
    verified.map(({ fileSha256 }) => fileSha256),
    [digest, digest, undefined, digest],
  );
  for (const { headers } of verified) {
    t.match(headers['idempotency-key'], /^[0-9a-f-]{36}$/);
    t.equal(headers['idempotency-key'], verified[0]!.headers['idempotency-key'], 'one charge');
  }
  t.strictSame(
    ['/uploads', '/v1/recordings/identify', '/v1/partner/reviews', '/v1/health'].map(
      (path) => service.requests(path).length,
    ),
    [2, 1, 4, 5],
  );
  t.notOk(service.requests('/uploads').some(({ headers }) => headers['x-api-key'] !== undefined));
});

t.test('unknown values and broken responses have a defined result', { skip }, async (t) => {
  const { service, directory } = await double(t);
  const later = { verdict: 'later', good: true, laterMember: { a: [1] }, decision: { status: 'later' } };
  service.queue(
    '/v1/verifications',
    { status: 200, body: later },
    { status: 200, body: { verdict: 'valid', good: false } },
    { status: 200, body: { verdict: 'valid' } },
    { status: 200, body: '<html>' },
    { status: 200, body: later, cutAt: 5 },
    { status: 307, headers: { Location: `${service.url}/v1/health` } },
    { status: 403, body: { error: 'No.', code: 'later', laterMember: 1 }, early: true },
    { status: 403, body: '<html>' },
  );
  service.on('/v1/health', () => ({
    status: 200,
    body: { ok: true },
    headers: { Deprecation: '@1767225600' },
  }));
  service.queue('/v1/uploads', {
    status: 201,
    body: { uploadId: 'upl_1', url: 'http://partners.example/uploads/upl_1', fields: {} },
  });
  service.on('/v1/proofs', () => ({ status: 200, body: { proofs: [], nextCursor: 'same' } }));
  const program = `${START}
log = io.StringIO()
logging.basicConfig(stream=log, level=logging.DEBUG)
takemark = client(attempts=1)
large = io.BytesIO(bytes(8_000_000))
results = [takemark.verify_file("song.wav") for _ in "12"]
failures = [failure(takemark.verify_file, "song.wav") for _ in "1234"]
failures += [failure(takemark.verify_file, file) for file in (large, "song.wav")]
failures.append(failure(takemark.upload_file, "song.wav"))
failures.append(failure(lambda: list(takemark.list_proofs())))
failures.append(failure(takemark.verify_file, os.devnull))
takemark.health()
refused = []
for call in (
    lambda: Client("http://partners.example", "key"),
    lambda: Client("http://127.0.0.1@partners.example", "key"),
    lambda: Client("ftp://127.0.0.1", "key"),
    lambda: Client("https://partners.example", "key\\n"),
    lambda: takemark.read_record(".."),
    lambda: takemark.read_record("a/b"),
    lambda: takemark.read_record(""),
):
    try:
        call()
    except ValueError:
        refused.append(True)
secret = os.environ["TAKEMARK_API_KEY"]
text = log.getvalue() + repr(takemark)
print(json.dumps([results, failures, len(refused), secret in text, "health uses what the service will remove" in text]))
`;
  const { length: before } = service.seen;
  const [results, failures, ...rest] = JSON.parse(
    await python(t, { program, url: service.url, directory, apiKey: 'tmk_secret' }),
  ) as readonly unknown[];
  t.strictSame(results, [
    { ...later, accepted: false },
    { verdict: 'valid', good: false, accepted: false },
  ]);
  t.strictSame(failures, [
    ['bad_response', null, null],
    ['bad_response', 200, null],
    ['connection_failed', null, null],
    ['bad_response', 307, null],
    ['later', 403, null],
    ['forbidden', 403, null],
    ['bad_response', null, null],
    ['bad_response', null, null],
    ['source_failed', null, null],
  ]);
  t.strictSame(rest, [7, false, true]);
  t.equal(service.seen.length - before, 8 + 1 + 2 + 1, 'no redirect is followed, and nothing else is sent');
});

t.test('a date in Retry-After is compared with the clock of its sender', { skip }, async (t) => {
  const { service, directory } = await double(t);
  const at = (second: number) => new Date(Date.UTC(2020, 0, 1, 0, 0, second)).toUTCString();
  const until = (second: number) => ({
    ...busy(503, 0),
    headers: { Date: at(0), 'Retry-After': at(second) },
  });
  service.queue('/v1/health', until(40), until(0), { status: 503, headers: { 'Retry-After': 'later' } });
  const program = `${START}
takemark = client(attempts=1)
print(json.dumps([failure(takemark.health) for _ in "123"]))
`;
  t.strictSame(JSON.parse(await python(t, { program, url: service.url, directory })), [
    ['unavailable', 503, 40],
    ['unavailable', 503, 0],
    ['unavailable', 503, null],
  ]);
});

t.test('a download writes and removes nothing but its own file', { skip }, async (t) => {
  const { service, directory } = await double(t);
  const own = ['other', 'take.wav.part', 'rotation.json.new'];
  await writeFile(join(directory, 'other'), 'other');
  for (const name of own.slice(1)) await symlink('other', join(directory, name));
  const body = Buffer.from('the delivered file');
  const digest = createHash('sha256').update(body);
  const headers = { 'Repr-Digest': `sha-256=:${digest.copy().digest('base64')}:` };
  service.queue(
    '/v1/proofs/prf_1/asset',
    { status: 403, body: { error: 'No.', code: 'forbidden' } },
    { status: 200, body: Buffer.alloc(1000), cutAt: 500 },
    { status: 200, body, headers },
  );
  service.on('/v1/partner/keys/rotate', () => ({ status: 201, body: { apiKey: 'tmk_new', keyId: 'key_1' } }));
  const program = `${START}
os.umask(0o027)
takemark = client()
print(json.dumps([
    failure(takemark.download_asset, "prf_1", "take.wav"),
    sorted(os.listdir()),
    takemark.download_asset("prf_1", "take.wav"),
    takemark.rotate_key("rotation.json")["apiKey"],
]))
`;
  t.strictSame(JSON.parse(await python(t, { program, url: service.url, directory })), [
    ['forbidden', 403, null],
    ['other', 'program.py', 'rotation.json.new', 'song.wav', 'take.wav.part'],
    digest.digest('hex'),
    'tmk_new',
  ]);
  t.strictSame(
    (await readdir(directory)).sort(),
    ['program.py', 'rotation.json', 'song.wav', 'take.wav', ...own].sort(),
  );
  for (const name of own) t.equal(await readFile(join(directory, name), 'utf8'), 'other', name);
  t.strictSame(await readFile(join(directory, 'take.wav')), body);
  for (const [name, mode] of [
    ['take.wav', 0o640],
    ['rotation.json', 0o600],
  ] as const)
    t.equal((await stat(join(directory, name))).mode & 0o777, mode, name);
});

t.test('a file is sent while it is read', { skip }, async (t) => {
  const { service, directory } = await double(t);
  const program = `${START}
import tracemalloc
with open("large.wav", "wb") as file:
    file.truncate(16 << 20)
tracemalloc.start()
accepted = client().verify_file("large.wav")["accepted"]
print(json.dumps([accepted, tracemalloc.get_traced_memory()[1] < 4 << 20]))
`;
  t.strictSame(JSON.parse(await python(t, { program, url: service.url, directory })), [true, true]);
  const [seen] = service.requests('/v1/verifications');
  t.equal(
    seen!.fileSha256,
    createHash('sha256')
      .update(Buffer.alloc(16 << 20))
      .digest('hex'),
  );
});

t.test('the example of the Python page prints the verdict', { skip }, async (t) => {
  const { service, directory } = await double(t);
  service.verdict = { verdict: 'valid', good: true, decision: { status: 'needs_review', reasons: [] } };
  const page = await readFile(join(PACKAGE, 'README.md'), 'utf8');
  const [, program] = /^```python\n([\s\S]*?)^```$/m.exec(page)!;
  t.equal(await python(t, { program: program!, url: service.url, directory }), 'valid needs_review True\n');
});

/** Returns a pair of keys whose public key an API key may have. */
function keyPair(type: 'ed25519' | 'P-256') {
  return type === 'ed25519'
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

t.test('the Python package signs each call of a key with a public key', { skip: signingSkip }, async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  for (const type of ['ed25519', 'P-256'] as const) {
    const { partnerId } = await service.partner();
    const { publicKey, privateKey } = keyPair(type);
    const { apiKey } = await service.service.operations.operator.createKey({
      partnerId,
      name: 'signed',
      publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    });
    const { file, proofId } = await service.issue(partnerId, wav(4800, {}, type === 'ed25519' ? 1 : 2));
    const mp3 = Buffer.concat([Buffer.from('fffb9064', 'hex'), noise(300_000)]);
    const pair = await service.issue(partnerId, mp3, { carrier: 'sidecar', fileName: 'song.mp3' });
    const directory = t.testdir();
    for (const [name, bytes] of Object.entries({
      'song.wav': file,
      'song.mp3': pair.file,
      'song.sidecar': pair.sidecar!,
      'signing.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }),
    }))
      await writeFile(join(directory, name), bytes);
    const program = `${START}
key = open("signing.pem").read()
takemark = client(signing_key=key)
rotated = takemark.rotate_key("rotation.json")["apiKey"]
print(json.dumps([
    takemark.verify_file("song.wav")["proofId"],
    takemark.verify_file("song.mp3", sidecar="song.sidecar")["proofId"],
    [match["type"] for match in takemark.identify_file("song.wav")["matches"]],
    len(takemark.list_proofs_page(limit=1)["proofs"]),
    takemark.download_asset(takemark.verify_file("song.wav")["proofId"], "asset.wav"),
    takemark.health()["ok"],
    Client(os.environ["TAKEMARK_URL"], rotated, signing_key=key.encode()).read_usage(days=1)["used"],
    failure(client().list_keys_page),
]))
`;
    t.strictSame(JSON.parse(await python(t, { program, url: service.partnerUrl, directory, apiKey })), [
      proofId,
      pair.proofId,
      ['exact_file'],
      1,
      createHash('sha256').update(file).digest('hex'),
      true,
      4,
      ['forbidden', 403, null],
    ]);
  }
});

t.test(
  'a signing key that cannot be used is refused without being shown',
  { skip: signingSkip },
  async (t) => {
    const directory = t.testdir();
    const pem = (key: ReturnType<typeof keyPair>['privateKey']) =>
      key.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'word' }).toString();
    await writeFile(join(directory, 'locked.pem'), pem(keyPair('ed25519').privateKey));
    const curve = generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).privateKey;
    await writeFile(join(directory, 'curve.pem'), curve.export({ type: 'pkcs8', format: 'pem' }));
    const program = `${START}
refused = []
for key in ("no key", open("locked.pem").read(), open("curve.pem").read()):
    try:
        client(signing_key=key)
    except ValueError as error:
        refused.append(str(error))
try:
    Client("https://partners.example", "tmk_key", signing_key="no key")
except ValueError as error:
    refused.append(str(error))
print(json.dumps(refused))
`;
    const apiKey = `tmk_key_${'0'.repeat(26)}_secret`;
    const url = 'https://partners.example';
    t.strictSame(JSON.parse(await python(t, { program, url, directory, apiKey })), [
      'signing_key must be a private key as PEM, without a password',
      'signing_key must be a private key as PEM, without a password',
      'signing_key must be an Ed25519 or P-256 key',
      'the key does not contain a key id',
    ]);
  },
);

t.test('a signing key without the package cryptography names what to install', { skip }, async (t) => {
  const directory = t.testdir({ 'cryptography.py': 'raise ImportError("absent")\n' });
  const program = `${START}
try:
    client(signing_key="no key")
except ImportError as error:
    print(error)
`;
  const apiKey = `tmk_key_${'0'.repeat(26)}_secret`;
  t.equal(
    await python(t, { program, url: 'https://partners.example', directory, apiKey }),
    'signing_key needs the package cryptography: pip install "takemark[signing]"\n',
  );
});
