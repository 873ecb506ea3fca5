/**
 * Produces one message to a Kafka broker, using only sockets. Topics whose names begin with `takemark.probe` exist
 * only for this.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Returns the name of the topic whose only partition is on this broker. */
const topicOf = (number) => `takemark.probe-${number}`;
const API = { produce: 0, saslHandshake: 17, createTopics: 19, saslAuthenticate: 36 };
const TOPIC_ALREADY_EXISTS = 36;
const MECHANISM = 'SCRAM-SHA-256';

/**
 * Resolves when the broker has acknowledged a message.
 * @param {{ number: number, address: string, port: number, security?: { ca: Buffer, user: string, password: string } }}
 * broker
 */
export async function produce({ number, address, port, security }) {
  const socket = security
    ? connectTls({ host: address, port, ca: security.ca, timeout: 5000 })
    : connect({ host: address, port, timeout: 5000 });
  socket.on('timeout', () => socket.destroy(new Error('no answer')));
  try {
    await once(socket, security ? 'secureConnect' : 'connect');
    if (security) await authenticate(socket, security);
    const name = string(topicOf(number));
    // One partition on this broker, with one copy, regardless of the default.
    const partition = [int(1), int(0), int(1), int(number)];
    const settings = [int(1), string('min.insync.replicas'), string('1')];
    // Throttle time, one topic: its name, the error code.
    const created = (
      await ask(socket, API.createTopics, 4, [
        int(1),
        name,
        int(-1),
        short(-1),
        ...partition,
        ...settings,
        int(5000),
        Buffer.of(0),
      ])
    ).readInt16BE(8 + name.length);
    if (created !== 0 && created !== TOPIC_ALREADY_EXISTS) throw new Error(`topic refused: error ${created}`);
    const batch = recordBatch('ready');
    // A topic: its name, one partition: its index, the error code.
    const produced = (
      await ask(socket, API.produce, 3, [
        short(-1),
        short(-1),
        int(5000),
        int(1),
        name,
        int(1),
        int(0),
        int(batch.length),
        batch,
      ])
    ).readInt16BE(4 + name.length + 8);
    if (produced !== 0) throw new Error(`message refused: error ${produced}`);
  } finally {
    socket.destroy();
  }
}

/** Authenticates by SCRAM (RFC 5802), without channel binding. */
async function authenticate(socket, { user, password }) {
  const handshake = await ask(socket, API.saslHandshake, 1, [string(MECHANISM)]);
  if (handshake.readInt16BE(0) !== 0) throw new Error(`${MECHANISM} is not offered`);
  const first = `n=${user},r=${randomBytes(16).toString('hex')}`;
  const challenge = await saslStep(socket, `n,,${first}`);
  const { r, s, i } = Object.fromEntries(challenge.split(',').map((part) => [part[0], part.slice(2)]));
  const final = `c=biws,r=${r}`;
  const salted = pbkdf2Sync(password, Buffer.from(s, 'base64'), Number(i), 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const signature = createHmac('sha256', createHash('sha256').update(clientKey).digest())
    .update(`${first},${challenge},${final}`)
    .digest();
  const proof = clientKey.map((byte, index) => byte ^ signature[index]);
  await saslStep(socket, `${final},p=${Buffer.from(proof).toString('base64')}`);
}

async function saslStep(socket, text) {
  const body = await ask(socket, API.saslAuthenticate, 0, [int(Buffer.byteLength(text)), Buffer.from(text)]);
  if (body.readInt16BE(0) !== 0) throw new Error('user name or password is refused');
  const messageLength = Math.max(0, body.readInt16BE(2));
  return String(body.subarray(4 + messageLength + 4));
}

/** Returns the body of the answer, after its correlation id. */
async function ask(socket, api, version, fields) {
  const message = Buffer.concat([short(api), short(version), int(1), string('probe'), ...fields]);
  socket.write(Buffer.concat([int(message.length), message]));
  let got = Buffer.alloc(0);
  while (got.length < 4 || got.length < 4 + got.readInt32BE(0)) {
    const [chunk] = await Promise.race([
      once(socket, 'data'),
      once(socket, 'close').then(() => Promise.reject(new Error('closed'))),
    ]);
    got = Buffer.concat([got, chunk]);
  }
  return got.subarray(8);
}

/** Returns a record batch of version 2 with one record of a few bytes. */
function recordBatch(text) {
  const value = Buffer.from(text);
  // Attributes, time and offset deltas are 0. No key (-1), then the value, no headers. Lengths are zigzag.
  const record = Buffer.concat([Buffer.of(0, 0, 0, 1, value.length * 2), value, Buffer.of(0)]);
  const now = long(Date.now());
  const checked = Buffer.concat([
    short(0),
    int(0),
    now,
    now,
    long(-1),
    short(-1),
    int(-1),
    int(1),
    Buffer.of(record.length * 2),
    record,
  ]);
  const rest = Buffer.concat([int(-1), Buffer.of(2), int(crc32c(checked) | 0), checked]);
  return Buffer.concat([long(0), int(rest.length), rest]);
}

function crc32c(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

function short(value) {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function long(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

function string(text) {
  return Buffer.concat([short(Buffer.byteLength(text)), Buffer.from(text)]);
}
