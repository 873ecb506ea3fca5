import { defined } from '../core/domain/defined.js';
import { UsageError } from './command.js';
import { type PlannedOutput, planOutput } from './output-file.js';

/** Files that the results of issuing and of sealing go to: one with the credential embedded, or a pair. */
export interface CredentialOutputs {
  readonly audio?: PlannedOutput;
  readonly sidecar?: PlannedOutput;
}

/** Options of the commands that write a credential. */
interface CredentialOutputOptions {
  readonly out?: string;
  readonly sidecarOut?: string;
  readonly force: boolean;
}

/** @throws UsageError before anything is issued or sealed */
export async function planOutputs(
  { out, sidecarOut, force }: CredentialOutputOptions,
  input: string,
): Promise<CredentialOutputs> {
  if (out === undefined && sidecarOut === undefined) throw new UsageError('--out is missing');
  if (out !== undefined && out === sidecarOut)
    throw new UsageError('--out and --sidecar-out name the same file');
  const plan = async (path: string | undefined): Promise<PlannedOutput | undefined> =>
    path === undefined ? undefined : planOutput(path, force, [input]);
  return defined({ audio: await plan(out), sidecar: await plan(sidecarOut) });
}

/** Returns the paths of the files, as the commands report them. */
export function writtenPaths({ audio, sidecar }: CredentialOutputs): {
  readonly out?: string;
  readonly sidecarOut?: string;
} {
  return defined({ out: audio?.path, sidecarOut: sidecar?.path });
}
