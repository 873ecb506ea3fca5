import { resolve } from 'node:path';
import { readApiKey } from '../../domain/partner-key.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { addProfile, readProfiles, removeProfile } from '../profiles.js';
import { parseAddress } from '../service-address.js';
import { printable } from '../terminal.js';

export const createProfile = defineCommand({
  name: 'profile add',
  summary: 'Keep the address of a service, and your key for it, under a name',
  details: [
    'The key is asked for without being shown, or read from a pipe; never given as a word, which other',
    'users of the machine could see. It is kept in ~/.takemark/profiles.json, which you alone can read.',
    '--profile NAME or TAKEMARK_PROFILE then takes the place of TAKEMARK_URL, TAKEMARK_API_KEY, TAKEMARK_CA',
    'and TAKEMARK_API_SIGNING_KEY, all of them: a key goes to its own service alone.',
  ],
  operands: ['<name>'],
  options: {
    url: { value: 'address', required: true, help: 'address of the service' },
    ca: { value: 'file', help: 'PEM of the authorities that may vouch for the service' },
    'signing-key': { value: 'file', help: 'PEM of the private key, if the key needs signed calls' },
    force: { help: 'replace a profile of that name' },
  },
  async run([name], { url, ca, signingKey, force }, { terminal, config, readSecret }) {
    const address = parseAddress('url', url);
    const apiKey = (await readSecret('API key (it is not shown): ')).trim();
    const keyId = readApiKey(apiKey)?.keyId;
    if (keyId === undefined) throw new UsageError('this is no whole API key: copy it once more');
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
    terminal.note(printable(`kept the profile ${name}: ${keyId} for ${address}`));
    return EXIT.good;
  },
});

export const listProfiles = defineCommand({
  name: 'profile list',
  summary: 'List your profiles: names, addresses and ids of keys',
  operands: [],
  options: { json: { help: 'the list as one line of JSON' } },
  async run(_operands, { json }, { terminal, config }) {
    const profiles = Object.entries(await readProfiles(config.profilesFile)).map(([name, profile]) => ({
      name,
      url: profile.url,
      keyId: readApiKey(profile.apiKey)?.keyId ?? 'no whole key',
    }));
    if (json) terminal.printJson({ profiles });
    else for (const { name, url, keyId } of profiles) terminal.print(printable(`${name}  ${url}  ${keyId}`));
    return EXIT.good;
  },
});

export const deleteProfile = defineCommand({
  name: 'profile remove',
  summary: 'Forget a profile; the key itself goes on working',
  operands: ['<name>'],
  options: {},
  async run([name], _options, { terminal, config }) {
    await removeProfile(config.profilesFile, name);
    terminal.note(printable(`forgot the profile ${name}`));
    return EXIT.good;
  },
});
