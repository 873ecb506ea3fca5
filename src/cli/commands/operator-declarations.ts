import { readFile, stat } from 'node:fs/promises';
import { defineCommand, EXIT, RuntimeError } from '../command.js';
import type { Declaration } from '../operator-client.js';
import { formatTime, printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

/** The largest JSON body that the service accepts, in bytes. */
const MAX_FILE_BYTES = 65_536;

export const recordDeclaration = defineCommand({
  name: 'operator declaration record',
  service: 'operator',
  summary: "Record a creator's survey answers for an issued proof",
  details: [
    'The file holds one JSON object with surveyVersion, submissionId, subject (opaque identifiers),',
    'submittedAt (unix seconds) and answers. answers has at least one of:',
    '  declaredOrigin      from_scratch, own_material, third_party_material,',
    '                      generated_material, undisclosed',
    '  aiShareBand         none, under_quarter, quarter_to_half,',
    '                      half_to_three_quarters, over_three_quarters, undisclosed',
    '  manualWork          none, some, substantial, entire, undisclosed',
    '  contributionBand    all_self_made, majority_self_made, shared,',
    '                      minority_self_made, undisclosed',
    '  disputedAssessment  not_disputed, disputed',
    '  aiRoles             a list of lyrics, composition, vocals, instruments, production,',
    '                      artwork, video; or only none; or only undisclosed',
    '',
    'Repeating a submission changes nothing. Different answers with the same submissionId are refused.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    proof: { value: 'proofId', required: true, help: 'proof that the answers are about' },
    file: { value: 'file', required: true, help: 'JSON file of the answers' },
    json: { help: 'print the stored declaration as one line of JSON' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    const submission = await readSubmission(options.file);
    const declaration = await withOperator(context, (client) =>
      client.recordDeclaration(options.proof, submission),
    );
    if (options.json) terminal.printJson(declaration);
    else terminal.print(declarationLine(declaration));
    return EXIT.good;
  },
});

export const listDeclarations = defineCommand({
  name: 'operator declaration list',
  service: 'operator',
  summary: "List creators' declarations about a proof, in the order they were recorded",
  details: ['Exit code 1: a declaration was altered in the store.', '', ...OPERATOR_DETAILS],
  operands: [],
  options: {
    proof: { value: 'proofId', required: true, help: 'proof to list declarations of' },
    json: { help: 'print one line of JSON per declaration' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    const declarations = await withOperator(context, (client) => client.listDeclarations(options.proof));
    for (const declaration of declarations) {
      if (options.json) terminal.printJson(declaration);
      else terminal.print(declarationLine(declaration));
    }
    return declarations.every(({ authentic }) => authentic !== false) ? EXIT.good : EXIT.notGood;
  },
});

/**
 * Reads a submission without checking the answers: the service knows the valid answers.
 * @throws RuntimeError
 */
async function readSubmission(path: string): Promise<object> {
  if ((await stat(path)).size > MAX_FILE_BYTES)
    throw new RuntimeError(`${path} is larger than ${MAX_FILE_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new RuntimeError(`${path} is not JSON`);
    throw error;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RuntimeError(`${path} does not hold a JSON object`);
  return value;
}

function declarationLine({ submissionId, submittedAt, subject, answers, authentic }: Declaration): string {
  const given = Object.entries(answers).map(([dimension, answer]) => `${dimension}=${answer}`);
  return printable(
    `${submissionId}  ${formatTime(submittedAt)}  ${subject}  ${given.join(' ')}${authentic === false ? '  ALTERED' : ''}`,
  );
}
