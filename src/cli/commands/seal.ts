import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { defineCommand, EXIT, RuntimeError } from '../command.js';
import { type CredentialOutputs, planOutputs, writtenPaths } from '../credential-outputs.js';
import { writeOutput } from '../output-file.js';
import type { PlainAudio, Sealer, SealFacts } from '../sealer.js';
import { formatTime, printable } from '../terminal.js';

export const seal = defineCommand({
  name: 'seal',
  summary: "Seal a recording offline with this device's own key",
  details: [
    'A seal shows that a file is unchanged since the device sealed it. A seal is not registered, so its',
    'verdict is local_seal. Without --sidecar-out the seal is embedded into a WAV/BWF file. With it, the',
    'seal is a sidecar beside audio of any format.',
  ],
  operands: ['<audio>'],
  options: {
    out: { value: 'file', help: 'sealed file to write' },
    'sidecar-out': { value: 'file', help: 'sidecar file to write' },
    'device-dir': { value: 'directory', help: 'directory of the device key (~/.takemark/device)' },
    force: { help: 'replace existing files' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run([path], options, { terminal, openSealer }) {
    const outputs = await planOutputs(options, path);
    const audio = await plainAudio(path);
    const sealer = await openSealer(options.deviceDir ?? join(homedir(), '.takemark', 'device'));
    try {
      const { sealedAt, kid, device } = await sealInto(sealer, audio, outputs);
      const written = writtenPaths(outputs);
      if (options.json) terminal.printJson({ sealedAt, kid, device, ...written });
      else
        terminal.print(
          `sealed ${formatTime(sealedAt)} by ${printable(device)} (key ${kid.slice(0, 16)})  ${printable(Object.values(written).join(', '))}`,
        );
    } finally {
      await sealer.close();
    }
    return EXIT.good;
  },
});

async function sealInto(sealer: Sealer, audio: PlainAudio, outputs: CredentialOutputs): Promise<SealFacts> {
  if (outputs.sidecar === undefined) {
    const sealed = await sealer.embed(audio);
    if (outputs.audio !== undefined) await writeOutput(outputs.audio, sealed.file);
    return sealed;
  }
  const sealed = await sealer.sidecar(audio);
  // Write the sidecar last: where a sidecar exists, its audio must exist too.
  if (outputs.audio !== undefined) await writeOutput(outputs.audio, audio.read());
  await writeOutput(outputs.sidecar, [sealed.sidecar]);
  return sealed;
}

/** @throws RuntimeError for a file that cannot be read twice */
async function plainAudio(path: string): Promise<PlainAudio> {
  const info = await stat(path);
  if (!info.isFile()) throw new RuntimeError(`${path} is not a regular file`);
  return { bytes: info.size, read: () => createReadStream(path) };
}
