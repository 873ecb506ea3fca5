import { EXIT, type Command, type Surroundings } from '../command.js';
import { findOperatorToken, OperatorClient } from '../operator-client.js';

/** What every operator command says of its environment. */
export const OPERATOR_DETAILS = [
  'TAKEMARK_OPERATOR_TOKEN holds the token; without it, the file operator-token in the data',
  'directory of a service on this machine does (TAKEMARK_DATA_DIR, takemark-data).',
  'TAKEMARK_OPERATOR_URL is the address (http://127.0.0.1:8081).',
];

/** Runs `work` with a client that is closed at the end. */
export async function withOperator<T>({ config, signal }: Surroundings, work: (client: OperatorClient) => Promise<T>): Promise<T> {
  const client = new OperatorClient({ url: config.operatorUrl, token: await findOperatorToken(config), signal });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

export const createPartner: Command = {
  name: 'operator partner create',
  summary: 'Create a partner',
  details: OPERATOR_DETAILS,
  operands: ['name'],
  options: {
    plan: { value: 'plan', help: 'trial, standard (the default) or volume' },
    json: { help: 'the partner as one line of JSON' },
  },
  async run(given, surroundings) {
    const { terminal } = surroundings;
    const plan = given.text('plan');
    const partner = await withOperator(surroundings, (client) => client.createPartner({ name: given.operand('name'), ...(plan === undefined ? {} : { plan }) }));
    if (given.flag('json')) terminal.printJson(partner);
    else terminal.print(`${partner.partnerId}  ${partner.name} (plan ${partner.plan})`);
    return EXIT.good;
  },
};

export const createKey: Command = {
  name: 'operator key create',
  summary: 'Create a key for a partner; its secret is shown this once',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    partner: { value: 'partnerId', required: true, help: 'whose key it is' },
    name: { value: 'name', required: true, help: 'what the key is called in lists' },
    json: { help: 'keyId, apiKey and name as one line of JSON' },
  },
  async run(given, surroundings) {
    const { terminal } = surroundings;
    const key = await withOperator(surroundings, (client) => client.createKey(given.requiredText('partner'), { name: given.requiredText('name') }));
    if (given.flag('json')) {
      terminal.printJson(key);
    } else {
      // The secret alone on stdout, so that it can be piped into a vault.
      terminal.note(`${key.keyId}  ${key.name}. Keep the secret now: it is never shown again.`);
      terminal.print(key.apiKey);
    }
    return EXIT.good;
  },
};

export const authority: Command = {
  name: 'operator authority',
  summary: "Print the certificates of the service's authority as PEM, the current one first",
  details: OPERATOR_DETAILS,
  operands: [],
  options: {},
  async run(_given, surroundings) {
    const pem = await withOperator(surroundings, (client) => client.authority());
    surroundings.terminal.printRaw(pem.endsWith('\n') ? pem : `${pem}\n`);
    return EXIT.good;
  },
};
