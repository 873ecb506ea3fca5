/**
 * Makes what the servers of `--secure` need: a certificate authority for this directory, a server certificate
 * and a password.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const USER = 'takemark';
const DAYS = '365';

/**
 * Returns the paths of the files. They exist after `makeSecurity`.
 * @returns {{ caFile: string, keystore: string, passwordFile: string }}
 */
export function securityFiles(scratch) {
  const directory = join(scratch, 'security');
  return {
    directory,
    caFile: join(directory, 'ca.pem'),
    keystore: join(directory, 'server.p12'),
    passwordFile: join(directory, 'password'),
  };
}

/** Returns the password of the user and of the key store. The first call makes it. */
export function password(scratch) {
  const { directory, passwordFile } = securityFiles(scratch);
  if (!existsSync(passwordFile)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(passwordFile, randomBytes(16).toString('hex'), { mode: 0o600 });
  }
  return readFileSync(passwordFile, 'utf8');
}

/** Makes missing files. The key store is renamed last, so an interrupted run leaves no incomplete one. */
export function makeSecurity(scratch) {
  const { directory, caFile, keystore } = securityFiles(scratch);
  const secret = password(scratch);
  if (existsSync(keystore)) return;
  const openssl = (...args) =>
    execFileSync('openssl', args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    caFile,
    '-days',
    DAYS,
    '-subj',
    '/CN=Takemark test services',
    '-addext',
    'basicConstraints=critical,CA:TRUE',
  );
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  writeFileSync(
    join(directory, 'server.ext'),
    'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n',
  );
  openssl(
    'x509',
    '-req',
    '-in',
    'server.csr',
    '-CA',
    caFile,
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-out',
    'server.pem',
    '-days',
    DAYS,
    '-extfile',
    'server.ext',
  );
  openssl(
    'pkcs12',
    '-export',
    '-in',
    'server.pem',
    '-inkey',
    'server.key',
    '-certfile',
    caFile,
    '-name',
    'server',
    '-out',
    `${keystore}.new`,
    '-passout',
    `pass:${secret}`,
  );
  renameSync(`${keystore}.new`, keystore);
  for (const name of ['ca.key', 'server.key', 'server.csr', 'server.ext'])
    rmSync(join(directory, name), { force: true });
}
