import type { Command } from './command.js';

/** The example values of operands and options, by the word in angle brackets. */
const VALUES: Readonly<Record<string, string>> = {
  address: 'https://takemark.example.com',
  audio: 'song.wav',
  deviceId: 'dev_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  directory: 'secrets',
  file: 'song.wav',
  folder: 'session.ardour',
  id: 'creator-4711',
  keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  kid: '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2',
  minutes: '10',
  name: 'example',
  number: '10',
  path: 'song.wav',
  partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  plan: 'standard',
  proof: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  requestId: 'req_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  reviewId: 'rev_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  time: '2026-01-01T00:00:00Z',
  title: '"Late Train Home"',
  version: '1',
};

/** The example values of options whose word is too general. With them, no output of an example is its input. */
const OPTION_VALUES: Readonly<Record<string, string>> = {
  file: 'answers.json',
  in: 'bundle.json',
  out: 'output',
  project: 'song.aup3',
  request: 'request.pem',
  state: 'rotation.json',
};

/** The most columns of a line. The help indents each line by two more. */
const MOST_COLUMNS = 78;

/**
 * Returns one call of a command as lines of a shell, with every operand and every option that the command
 * requires.
 */
export function exampleOf({ name, operands, options }: Command): string {
  const given = operands.map((spec) => exampleValue(spec.replaceAll(/[<>[\].]/g, '')));
  const required = Object.entries(options)
    .filter(([, { required }]) => required === true)
    .map(([option, { value, choices, range }]) => {
      const shown = choices?.[0] ?? range?.[0] ?? OPTION_VALUES[option] ?? exampleValue(value!);
      return `--${option} ${shown}`;
    });
  const lines = [`takemark ${name}`];
  for (const part of [...given, ...required]) {
    const last = lines.at(-1)!;
    // Two columns are for a backslash.
    if (last.length + 1 + part.length + 2 <= MOST_COLUMNS) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(`  ${part}`);
  }
  return lines.join(' \\\n');
}

function exampleValue(word: string): string {
  const value = VALUES[word];
  if (value === undefined) throw new Error(`there is no example of <${word}>`);
  return value;
}
