import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Client, createClient, type KnownVerdict } from '../../client/index.js';
import { audioSource } from '../../client/source.js';
import { RuntimeError } from '../command.js';
import { OperatorClient } from '../operator-client.js';
import type { Sealer } from '../sealer.js';
import type { ServiceProcess } from './service-process.js';

/** A file, its history, and the expected verdict. */
export interface Specimen {
  readonly fileName: string;
  readonly story: string;
  readonly audio: Uint8Array;
  readonly sidecar?: Uint8Array;
  readonly expected: KnownVerdict;
}

/** An audio file with its issued credential, either embedded or as a sidecar. */
export interface Issued {
  readonly proofId: string;
  readonly audio: Buffer;
  readonly sidecar?: Buffer;
}

/** The version of the consent text that the demo's creator agreed to. */
const CONSENT = 'demo-consent-1';

/** A partner with a key on one service, and the operator client of that service. */
export class DemoPartner {
  readonly client: Client;
  /** The address of the partner listener. */
  readonly serviceUrl: string;
  readonly #operator: OperatorClient;
  readonly #partnerId: string;

  private constructor(client: Client, serviceUrl: string, operator: OperatorClient, partnerId: string) {
    this.client = client;
    this.serviceUrl = serviceUrl;
    this.#operator = operator;
    this.#partnerId = partnerId;
  }

  static async create(service: ServiceProcess, signal: AbortSignal): Promise<DemoPartner> {
    const operator = new OperatorClient({
      url: service.operatorUrl,
      token: service.operatorToken,
      signal,
      allowPlainHttp: false,
    });
    const { partnerId } = await operator.createPartner({ name: 'Demo Distribution' });
    const { apiKey } = await operator.createKey(partnerId, { name: 'demo' });
    const client = createClient({ baseUrl: service.url, apiKey });
    return new DemoPartner(client, service.url, operator, partnerId);
  }

  async issue(
    audio: Uint8Array,
    song: string,
    fileName: string,
    carrier: 'embedded' | 'sidecar',
    trace?: Uint8Array,
  ): Promise<Issued> {
    const { proofId } = await this.#operator.issue({
      partnerId: this.#partnerId,
      song,
      fileName,
      carrier,
      idempotencyKey: randomUUID(),
      audio: await audioSource(audio),
      ...(trace === undefined ? {} : { evidence: { trace: await audioSource(trace) } }),
    });
    const issued = { proofId, audio: await this.#read(proofId, 'audio') };
    return carrier === 'embedded' ? issued : { ...issued, sidecar: await this.#read(proofId, 'sidecar') };
  }

  enrolDevice(deviceId: string): Promise<unknown> {
    return this.#operator.enrolDevice({ deviceId });
  }

  /** Records the creator's answers and the consent to the delivery of source detail. */
  async declare(proofId: string, answers: object): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    await this.#operator.recordDeclaration(proofId, {
      surveyVersion: 'demo-1',
      submissionId: 'survey_1',
      subject: 'creator_1',
      submittedAt: now,
      answers,
    });
    await this.#operator.approveSourceDetail(this.#partnerId, CONSENT);
    await this.#operator.grantConsent(proofId, { consentVersion: CONSENT, grantedAt: now });
  }

  close(): void {
    this.client.close();
    this.#operator.close();
  }

  async #read(proofId: string, part: 'audio' | 'sidecar'): Promise<Buffer> {
    let bytes = Buffer.alloc(0);
    await this.#operator.readAsset(proofId, part, async (body) => {
      bytes = await buffer(body);
    });
    return bytes;
  }
}

export interface Fixtures {
  readonly wav: Buffer;
  readonly embedded: Issued;
  readonly pair: Issued;
  /** Issued by another environment, under another authority. */
  readonly foreign: Issued;
  readonly sealed: Buffer;
}

/** Returns at least one specimen for each of the six verdicts. */
export function specimens({ wav, embedded, pair, foreign, sealed }: Fixtures): readonly Specimen[] {
  const sidecar = pair.sidecar === undefined ? {} : { sidecar: pair.sidecar };
  return [
    { fileName: 'take.wav', story: 'issued, credential embedded', audio: embedded.audio, expected: 'valid' },
    {
      fileName: 'take.aiff + take.sidecar',
      story: 'issued as a pair',
      audio: pair.audio,
      ...sidecar,
      expected: 'valid',
    },
    {
      fileName: 'louder.aiff + take.sidecar',
      story: 'one sample of the pair changed',
      audio: flipped(pair.audio, Math.floor(pair.audio.length / 2)),
      ...sidecar,
      expected: 'audioChanged',
    },
    {
      fileName: 'renamed.wav',
      story: 'proof id in the credential replaced',
      audio: withOtherProofId(embedded),
      expected: 'tampered',
    },
    {
      fileName: 'beta.wav',
      story: 'issued by another environment',
      audio: foreign.audio,
      expected: 'unregistered',
    },
    {
      fileName: 'edited.wav',
      story: 'one sample changed after issuing',
      audio: flipped(embedded.audio, Math.floor(wav.length / 2)),
      expected: 'unreadable',
    },
    { fileName: 'plain.wav', story: 'not issued, no credential', audio: wav, expected: 'unreadable' },
    {
      fileName: 'sealed.wav',
      story: "sealed offline by an artist's device",
      audio: sealed,
      expected: 'local_seal',
    },
  ];
}

export async function sealedCopy(sealer: Sealer, audio: Uint8Array): Promise<Buffer> {
  const { file } = await sealer.embed({
    bytes: audio.length,
    read: async function* () {
      yield audio;
    },
  });
  return buffer(file);
}

/** Writes the specimens to a directory. */
export async function writeSpecimens(directory: string, list: readonly Specimen[]): Promise<void> {
  for (const { fileName, audio, sidecar } of list) {
    const [audioName = fileName, sidecarName] = fileName.split(' + ');
    await writeFile(join(directory, audioName), audio);
    if (sidecar !== undefined && sidecarName !== undefined)
      await writeFile(join(directory, sidecarName), sidecar);
  }
}

function flipped(bytes: Uint8Array, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

/** Swaps the last character of the proof id that is written in the credential. */
function withOtherProofId({ proofId, audio }: Issued): Buffer {
  const at = audio.lastIndexOf(proofId, undefined, 'latin1');
  if (at < 0) throw new RuntimeError('the credential does not name its proof');
  const copy = Buffer.from(audio);
  copy.write(proofId.endsWith('0') ? '1' : '0', at + proofId.length - 1, 'latin1');
  return copy;
}
