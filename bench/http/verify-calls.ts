import { createHash } from 'node:crypto';
import { jsonRequest } from '../load/form.js';
import type { PreparedCall } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import type { Child } from '../service/child.js';
import type { ServiceProcess } from '../service/service-process.js';

/** The number of uploads at once, of all partners together. */
const UPLOADS_AT_ONCE = 64;

export interface Partner {
  readonly partnerId: string;
  readonly apiKey: string;
}

/** A proof with its deliverable, as `ServiceProcess.issue` returns them. */
export interface Issued {
  readonly proofId: string;
  readonly deliverable: Uint8Array;
}

/** An upload of a partner, which one call may verify as a new billable unit. */
export interface Slot {
  readonly uploadId: string;
  readonly apiKey: string;
}

/** Creates partners on the plan that limits least, each with a key. */
export async function createPartners(service: ServiceProcess, count: number): Promise<readonly Partner[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const partnerId = await service.createPartner('volume');
      return { partnerId, apiKey: await service.createKey(partnerId) };
    }),
  );
}

/** Uploads `file` so often, shared among the partners, and mixes them. */
export async function uploadCopies(
  service: ServiceProcess,
  client: Child<UploadClient>,
  partners: readonly Partner[],
  count: number,
  file: Uint8Array,
): Promise<readonly Slot[]> {
  const share = Math.ceil(count / partners.length);
  const lists = await Promise.all(
    partners.map(async ({ apiKey }) => {
      const ids = await client.call('storeMany', {
        port: Number(service.partnerUrl.port),
        apiKey,
        connections: Math.ceil(UPLOADS_AT_ONCE / partners.length),
        count: share,
        files: [file],
      });
      return ids.map((uploadId) => ({ uploadId, apiKey }));
    }),
  );
  return Array.from({ length: share }, (_, i) => lists.map((list) => list[i]!)).flat();
}

/** Uploads each proof's file once, shared among the partners. Returns the calls that verify them. */
export async function eachProofCalls(
  service: ServiceProcess,
  client: Child<UploadClient>,
  partners: readonly Partner[],
  issued: readonly Issued[],
): Promise<readonly PreparedCall[]> {
  const calls = await Promise.all(
    partners.map(async ({ apiKey }, partner) => {
      const own = issued.filter((_, index) => index % partners.length === partner);
      const ids = await client.call('storeMany', {
        port: Number(service.partnerUrl.port),
        apiKey,
        connections: Math.ceil(UPLOADS_AT_ONCE / partners.length),
        count: own.length,
        files: own.map(({ deliverable }) => deliverable),
      });
      return own.flatMap((proof, index) => embeddedCalls(proof, [{ uploadId: ids[index]!, apiKey }]));
    }),
  );
  return issued.map((_, index) => calls[index % partners.length]![Math.floor(index / partners.length)]!);
}

/** Calls that verify a credentialed file, one for each of its uploads. */
export function embeddedCalls(
  { proofId, deliverable }: Issued,
  slots: readonly Slot[],
): readonly PreparedCall[] {
  const expect = {
    verdict: 'valid',
    good: true,
    proofId,
    'decision.credentialCarrier': 'embedded',
    'audio.sha256': sha256(deliverable),
  };
  return slots.map(({ uploadId, apiKey }) => ({
    request: jsonRequest('/v1/verify', { 'x-api-key': apiKey }, JSON.stringify({ uploadId })),
    expect,
  }));
}

/** Calls that were never sent before, a share at a time. */
export class Supply {
  readonly all: readonly PreparedCall[];
  readonly #share: number;
  #next = 0;

  constructor(all: readonly PreparedCall[], share: number) {
    this.all = all;
    this.#share = share;
  }

  get used(): number {
    return this.#next;
  }

  next(): readonly PreparedCall[] {
    const share = this.all.slice(this.#next, this.#next + this.#share);
    this.#next += share.length;
    return share;
  }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
