import { readFile } from 'node:fs/promises';
import { defined } from '../../domain/defined.js';
import { defineCommand, EXIT } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { formatTime, printable } from '../terminal.js';

const HERE = [
  'With the service running or stopped, on its data directory: TAKEMARK_DATA_DIR, TAKEMARK_ENVIRONMENT',
  'and TAKEMARK_SIGNING_ALGORITHM say which leaf is meant, TAKEMARK_SIGNING_PKCS11 and its kin that a',
  'token has its key.',
];
const THERE = [
  'On a machine of its own, without a service: the directory is all that is needed, and the key never',
  'leaves it. TAKEMARK_ENVIRONMENT says whose authority it is.',
];
const FORCE = { help: 'replace a file that exists' } as const;

export const requestLeaf = defineCommand({
  name: 'operator signing request',
  summary: 'Write a request (PKCS#10) for a new signing certificate',
  details: [
    'Its key is made here and stays here. Take the request to the authority, and install what it',
    'issues.',
    '',
    ...HERE,
  ],
  operands: [],
  options: {
    out: { value: 'file', required: true, help: 'where the request goes' },
    force: FORCE,
    json: { help: 'where it went as one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const output = await planOutput(options.out, options.force, []);
    await writeOutput(output, [Buffer.from(await cluster.requestLeaf())]);
    if (options.json) terminal.printJson({ out: output.path });
    else
      terminal.print(
        printable(
          `wrote ${output.path}: takemark authority issue --request ${output.path}, where the authority is`,
        ),
      );
    return EXIT.good;
  },
});

export const installLeaf = defineCommand({
  name: 'operator signing install',
  summary: 'Install the certificate that was issued for the request; the next start signs with it',
  details: [
    'The former certificate goes to known/, where it verifies on, and its key is removed.',
    '',
    ...HERE,
  ],
  operands: [],
  options: {
    certificate: {
      value: 'file',
      required: true,
      help: 'what takemark authority issue wrote: the leaf, then its authority',
    },
    json: { help: 'what was installed as one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const { kid, notAfter, former } = await cluster.installLeaf(await readFile(options.certificate, 'utf8'));
    if (options.json) terminal.printJson(defined({ kid, notAfter, former }));
    else
      terminal.print(
        `installed ${kid}, until ${formatTime(notAfter)}${former === undefined ? '' : `; ${former} verifies on`}. Restart the service to sign with it.`,
      );
    return EXIT.good;
  },
});

const DIRECTORY = { value: 'directory', required: true, help: "the authority's own" } as const;

export const initAuthority = defineCommand({
  name: 'authority init',
  summary: 'Make an authority that signs the signing certificates of a service, offline',
  details: THERE,
  operands: [],
  options: { dir: DIRECTORY },
  async run(_operands, options, { terminal, cluster }) {
    terminal.printRaw(await cluster.initAuthority(options.dir));
    return EXIT.good;
  },
});

export const issueLeaf = defineCommand({
  name: 'authority issue',
  summary: 'Sign a certificate for a request, of the one form that signing certificates have',
  details: [...THERE, 'The request must be signed with the key that it is for, and name this environment.'],
  operands: [],
  options: {
    dir: DIRECTORY,
    request: { value: 'file', required: true, help: 'what takemark operator signing request wrote' },
    out: { value: 'file', required: true, help: 'where the certificate goes, followed by the authority' },
    days: { value: 'n', range: [1, 7305], help: 'that it lives, at most as long as the authority (7305)' },
    force: FORCE,
    json: { help: 'what was signed as one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const request = options.request;
    const output = await planOutput(options.out, options.force, [request]);
    const { pem, ...leaf } = await cluster.issueLeaf(
      options.dir,
      await readFile(request, 'utf8'),
      options.days ?? 7305,
    );
    await writeOutput(output, [Buffer.from(pem)]);
    if (options.json) terminal.printJson({ ...leaf, out: output.path });
    else
      terminal.print(
        printable(
          `signed '${leaf.subject}' (${leaf.algorithm}, ${leaf.kid}), ${formatTime(leaf.notBefore)} to ${formatTime(leaf.notAfter)}, into ${output.path}`,
        ),
      );
    return EXIT.good;
  },
});
