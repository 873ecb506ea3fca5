import { readFile, stat } from 'node:fs/promises';
import { RuntimeError } from '../command.js';
import type { BodyAt, ResponseAt } from '../operator-client.js';
import { formatTime } from '../terminal.js';
import { operatorCall } from './call-command.js';

/** The largest JSON body that the service accepts, in bytes. */
const MAX_FILE_BYTES = 65_536;

const recordDeclaration = operatorCall({
  name: 'operator declaration record',
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
  ],
  options: {
    proof: { value: 'proofId', required: true, help: 'proof that the answers are about' },
    file: { value: 'file', required: true, help: 'JSON file of the answers' },
  },
  json: 'print the stored declaration as one line of JSON',
  async call(_operands, { proof: proofId, file }) {
    const json = await readSubmission(file);
    return (client) => client.call('POST proofs/{proofId}/declarations', { path: { proofId }, json });
  },
  columns: columnsOf,
});

const listDeclarations = operatorCall({
  name: 'operator declaration list',
  summary: "List creators' declarations about a proof, in the order they were recorded",
  details: ['Exit code 1: a declaration was altered in the store.'],
  options: { proof: { value: 'proofId', required: true, help: 'proof to list declarations of' } },
  json: 'print one line of JSON per declaration',
  call:
    (_operands, { proof: proofId }) =>
    (client) =>
      client.list('GET proofs/{proofId}/declarations', 'declarations', { path: { proofId } }),
  columns: columnsOf,
  isGood: ({ authentic }) => authentic !== false,
});

export const DECLARATION_COMMANDS = [recordDeclaration, listDeclarations];

/**
 * Reads a submission without checking the answers: the service knows the valid answers.
 * @throws RuntimeError
 */
async function readSubmission(path: string): Promise<BodyAt<'POST proofs/{proofId}/declarations'>> {
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
  return value as BodyAt<'POST proofs/{proofId}/declarations'>;
}

/** A declaration. Only lists say whether it is authentic. */
type Declaration = ResponseAt<'POST proofs/{proofId}/declarations'> &
  Partial<ResponseAt<'GET proofs/{proofId}/declarations'>['declarations'][number]>;

function columnsOf(declaration: Declaration): readonly (string | undefined)[] {
  const { submissionId, submittedAt, subject, answers, authentic } = declaration;
  const given = Object.entries(answers).map(([dimension, answer]) => `${dimension}=${answer}`);
  const mark = authentic === false ? 'ALTERED' : undefined;
  return [submissionId, formatTime(submittedAt), subject, given.join(' '), mark];
}
