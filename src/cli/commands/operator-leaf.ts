import { readFile } from 'node:fs/promises';
import { defined } from '../../core/domain/defined.js';
import { defineCommand, EXIT } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { formatTime, printable } from '../terminal.js';

const HERE = [
  'Works on the data directory of the service, while the service is running or stopped.',
  'TAKEMARK_DATA_DIR, TAKEMARK_ENVIRONMENT and TAKEMARK_SIGNING_ALGORITHM select the signing certificate.',
  'If its key is in a PKCS#11 token, set TAKEMARK_SIGNING_PKCS11 and TAKEMARK_SIGNING_PKCS11_* too.',
];
const THERE = [
  'Run it on a separate machine without a service. It needs only the directory, and the key of the',
  'authority never leaves that directory. TAKEMARK_ENVIRONMENT is the environment of the authority.',
];
const FORCE = { help: 'replace an existing file' } as const;

const requestLeaf = defineCommand({
  name: 'operator signing request',
  summary: 'Write a certificate request (PKCS#10) for a new signing certificate',
  details: [
    'The new key is created here and stays here. Take the request to the authority, and install the',
    'certificate that the authority issues.',
    '',
    ...HERE,
  ],
  options: {
    out: { value: 'file', required: true, help: 'request file to write' },
    force: FORCE,
    json: { help: 'print the path as one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const output = await planOutput(options.out, options.force, []);
    await writeOutput(output, [Buffer.from(await cluster.requestLeaf())]);
    if (options.json) terminal.printJson({ out: output.path });
    else
      terminal.print(
        printable(
          `wrote ${output.path}. Next, on the authority's machine: takemark authority issue --request ${output.path}`,
        ),
      );
    return EXIT.good;
  },
});

const installLeaf = defineCommand({
  name: 'operator signing install',
  summary: 'Install an issued signing certificate; the service signs with it after a restart',
  details: [
    'The old certificate moves to known/, where it still verifies, and its key is deleted.',
    '',
    ...HERE,
  ],
  options: {
    certificate: {
      value: 'file',
      required: true,
      help: 'output of takemark authority issue: the certificate, then its authority',
    },
    json: { help: 'print the installed certificate as one line of JSON' },
  },
  async run(_operands, options, { terminal, cluster }) {
    const { kid, notAfter, former } = await cluster.installLeaf(await readFile(options.certificate, 'utf8'));
    if (options.json) terminal.printJson(defined({ kid, notAfter, former }));
    else
      terminal.print(
        `installed ${kid}, valid until ${formatTime(notAfter)}${former === undefined ? '' : `; ${former} still verifies`}. Restart the service to sign with the new certificate.`,
      );
    return EXIT.good;
  },
});

const DIRECTORY = { value: 'directory', required: true, help: 'directory of the authority' } as const;

const initAuthority = defineCommand({
  name: 'authority init',
  summary: 'Create an offline authority for the signing certificates of a service',
  details: THERE,
  options: { dir: DIRECTORY },
  async run(_operands, options, { terminal, cluster }) {
    terminal.printRaw(await cluster.initAuthority(options.dir));
    return EXIT.good;
  },
});

const issueLeaf = defineCommand({
  name: 'authority issue',
  summary: 'Issue a signing certificate for a certificate request',
  details: [
    ...THERE,
    'The request must be signed with its own key and name this environment. Every certificate has the same',
    'fixed profile.',
  ],
  options: {
    dir: DIRECTORY,
    request: { value: 'file', required: true, help: 'output of takemark operator signing request' },
    out: { value: 'file', required: true, help: 'file to write: the certificate, then the authority' },
    days: {
      value: 'n',
      range: [1, 7305],
      help: 'lifetime in days, 1 to 7305, limited by the authority (7305)',
    },
    force: FORCE,
    json: { help: 'print the certificate as one line of JSON' },
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

export const LEAF_COMMANDS = [requestLeaf, installLeaf, initAuthority, issueLeaf];
