import { resolve } from 'node:path';
import { readApiKey } from '../../service/domain/partner-key.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { addProfile, readProfiles, removeProfile } from '../profiles.js';
import { parseAddress } from '../service-address.js';
import { printable } from '../terminal.js';

const createProfile = defineCommand({
  name: 'profile add',
  summary: 'Save the address of a service and your key for it under a name',
  details: [
    'The command asks for the key without showing it, or reads the key from a pipe. The key is never an',
    'argument, because other users of the machine can see arguments. It is saved in',
    '~/.takemark/profiles.json, which only you can read. --profile NAME or TAKEMARK_PROFILE then replaces',
    'TAKEMARK_URL, TAKEMARK_API_KEY, TAKEMARK_CA and TAKEMARK_API_SIGNING_KEY together, so that a key is',
    'sent only to its own service.',
  ],
  operands: ['<name>'],
  options: {
    url: { value: 'address', required: true, help: 'address of the service' },
    ca: { value: 'file', help: 'PEM file of the certificate authorities to trust for the service' },
    'signing-key': { value: 'file', help: 'PEM file of the private key, if the key requires signed calls' },
    force: { help: 'replace an existing profile' },
  },
  async run([name], { url, ca, signingKey, force }, { terminal, config, readSecret }) {
    const address = parseAddress('url', url);
    const apiKey = (await readSecret('API key (hidden): ')).trim();
    const keyId = readApiKey(apiKey)?.keyId;
    if (keyId === undefined) throw new UsageError('the API key is incomplete or misspelt: copy it again');
    await addProfile(
      config.profilesFile,
      name,
      {
        url: address,
        apiKey,
        ...(ca === undefined ? {} : { ca: resolve(ca) }),
        ...(signingKey === undefined ? {} : { signingKey: resolve(signingKey) }),
      },
      { force },
    );
    terminal.note(printable(`saved profile ${name}: ${keyId} for ${address}`));
    return EXIT.good;
  },
});

const listProfiles = defineCommand({
  name: 'profile list',
  summary: 'List your profiles with their addresses and key ids',
  options: { json: { help: 'print the list as one line of JSON' } },
  async run(_operands, { json }, { terminal, config }) {
    const profiles = Object.entries(await readProfiles(config.profilesFile)).map(([name, profile]) => ({
      name,
      url: profile.url,
      keyId: readApiKey(profile.apiKey)?.keyId ?? 'incomplete key',
    }));
    if (json) terminal.printJson({ profiles });
    else for (const { name, url, keyId } of profiles) terminal.print(printable(`${name}  ${url}  ${keyId}`));
    if (profiles.length === 0) terminal.note('no profiles');
    return EXIT.good;
  },
});

const deleteProfile = defineCommand({
  name: 'profile remove',
  summary: 'Delete a profile; its key stays valid',
  operands: ['<name>'],
  async run([name], _options, { terminal, config }) {
    await removeProfile(config.profilesFile, name);
    terminal.note(printable(`deleted profile ${name}`));
    return EXIT.good;
  },
});

export const PROFILE_COMMANDS = [createProfile, listProfiles, deleteProfile];
