import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { type Client, createClient } from '../../client/index.js';
import { audioSource } from '../../client/source.js';
import { type BodyAt, OperatorClient } from '../operator-client.js';
import type { Issued } from '../specimens/verdict-specimens.js';
import type { ServiceProcess } from './service-process.js';

/** The version of the consent text that the demo's creator agreed to. */
const CONSENT = 'demo-consent-1';

type Answers = BodyAt<'POST proofs/{proofId}/declarations'>['answers'];

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
    const { partnerId } = await operator.call('POST partners', { json: { name: 'Demo Distribution' } });
    const { apiKey } = await operator.call('POST partners/{partnerId}/keys', {
      path: { partnerId },
      json: { name: 'demo' },
    });
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
      query: { partnerId: this.#partnerId, song, fileName, carrier },
      idempotencyKey: randomUUID(),
      audio: await audioSource(audio),
      ...(trace === undefined ? {} : { evidence: { trace: await audioSource(trace) } }),
    });
    const issued = { proofId, audio: await this.#read(proofId, 'audio') };
    return carrier === 'embedded' ? issued : { ...issued, sidecar: await this.#read(proofId, 'sidecar') };
  }

  enrolDevice(deviceId: string): Promise<unknown> {
    return this.#operator.call('POST devices', { json: { deviceId } });
  }

  /** Records the creator's answers and the consent to the delivery of source detail. */
  async declare(proofId: string, answers: Answers): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    const path = { proofId, partnerId: this.#partnerId };
    await this.#operator.call('POST proofs/{proofId}/declarations', {
      path,
      json: {
        surveyVersion: 'demo-1',
        submissionId: 'survey_1',
        subject: 'creator_1',
        submittedAt: now,
        answers,
      },
    });
    await this.#operator.call('PUT partners/{partnerId}/source-detail', {
      path,
      json: { consentVersion: CONSENT },
    });
    await this.#operator.call('PUT proofs/{proofId}/source-detail-consent', {
      path,
      json: { consentVersion: CONSENT, grantedAt: now },
    });
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
