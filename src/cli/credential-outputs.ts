import { UsageError } from './command.js';
import { type PlannedOutput, planOutput } from './output-file.js';

/** Where the results of issuing and of sealing go: embedded into `audio`, or a pair. */
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
  return {
    ...(out === undefined ? {} : { audio: await planOutput(out, force, [input]) }),
    ...(sidecarOut === undefined ? {} : { sidecar: await planOutput(sidecarOut, force, [input]) }),
  };
}

/** As the commands report it. */
export function writtenPaths({ audio, sidecar }: CredentialOutputs): {
  readonly out?: string;
  readonly sidecarOut?: string;
} {
  return {
    ...(audio === undefined ? {} : { out: audio.path }),
    ...(sidecar === undefined ? {} : { sidecarOut: sidecar.path }),
  };
}
