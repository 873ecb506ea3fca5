/** Sends one query to a Cassandra node over its native protocol (version 4), using only sockets. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

const OPCODE = {
  error: 0x00,
  startup: 0x01,
  ready: 0x02,
  authenticate: 0x03,
  query: 0x07,
  result: 0x08,
  authResponse: 0x0f,
  authSuccess: 0x10,
};
const CONSISTENCY_ONE = 1;

/**
 * @typedef {{ address: string, port: number, security?: { ca: Buffer, user: string, password: string } }}
 * Node
 */

/**
 * Resolves with the number of other nodes that this node knows, which also shows that it answers queries.
 * @param {Node} node
 */
export async function countPeers(node) {
  const body = await query(node, 'SELECT COUNT(*) FROM system.peers_v2');
  // The result is one row with one bigint, which ends the body.
  return Number(body.readBigInt64BE(body.length - 8));
}

/**
 * Resolves with the body of a RESULT frame.
 * @param {Node} node
 * @param {string} text
 */
export async function query({ address, port, security }, text) {
  const socket = security
    ? connectTls({ host: address, port, ca: security.ca, timeout: 5000 })
    : connect({ host: address, port, timeout: 5000 });
  socket.on('timeout', () => socket.destroy(new Error('no answer')));
  try {
    await once(socket, security ? 'secureConnect' : 'connect');
    let answer = await ask(
      socket,
      OPCODE.startup,
      Buffer.concat([short(1), string('CQL_VERSION'), string('3.0.0')]),
    );
    if (answer.opcode === OPCODE.authenticate) {
      const token = Buffer.from(`\0${security?.user ?? ''}\0${security?.password ?? ''}`);
      answer = await ask(socket, OPCODE.authResponse, Buffer.concat([int(token.length), token]));
    }
    if (answer.opcode !== OPCODE.ready && answer.opcode !== OPCODE.authSuccess) throw refused(answer);
    const statement = Buffer.from(text);
    answer = await ask(
      socket,
      OPCODE.query,
      Buffer.concat([int(statement.length), statement, short(CONSISTENCY_ONE), Buffer.of(0)]),
    );
    if (answer.opcode !== OPCODE.result) throw refused(answer);
    return answer.body;
  } finally {
    socket.destroy();
  }
}

async function ask(socket, opcode, body) {
  socket.write(Buffer.concat([Buffer.of(0x04, 0, 0, 0, opcode), int(body.length), body]));
  let got = Buffer.alloc(0);
  while (got.length < 9 || got.length < 9 + got.readUInt32BE(5)) {
    const [chunk] = await Promise.race([
      once(socket, 'data'),
      once(socket, 'close').then(() => Promise.reject(new Error('closed'))),
    ]);
    got = Buffer.concat([got, chunk]);
  }
  return { opcode: got[4], body: got.subarray(9) };
}

function refused({ opcode, body }) {
  return new Error(opcode === OPCODE.error ? `${body.subarray(6)}` : `unexpected opcode ${opcode}`);
}

function int(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function short(value) {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function string(text) {
  return Buffer.concat([short(Buffer.byteLength(text)), Buffer.from(text)]);
}
