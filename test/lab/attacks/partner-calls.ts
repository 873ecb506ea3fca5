/** The calls of an honest partner during an attack: slot, post, verify. Each is sent once. */
import type { ConfinedService } from './confined-service.js';

export interface Outcome {
  readonly status: number;
  readonly reason?: string | undefined;
}

/** Uploads a file from slot to storage. A connection that is cut counts as status 0. */
export async function uploadOnce(
  service: ConfinedService,
  apiKey: string,
  audio: Uint8Array,
): Promise<Outcome & { readonly uploadId?: string }> {
  try {
    const slot = await fetch(`${service.partnerUrl}/v1/uploads`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: '{"purpose":"verify"}',
      signal: AbortSignal.timeout(60_000),
    });
    if (slot.status !== 201) return await outcomeOf(slot);
    const { uploadId, url, fields } = (await slot.json()) as {
      uploadId: string;
      url: string;
      fields: Record<string, string>;
    };
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append('file', new Blob([Buffer.from(audio)]), 'take.wav');
    const stored = await fetch(url, { method: 'POST', body: form, signal: AbortSignal.timeout(60_000) });
    return { ...(await outcomeOf(stored)), uploadId };
  } catch {
    return { status: 0, reason: 'cut' };
  }
}

export async function verifyOnce(
  service: ConfinedService,
  apiKey: string,
  uploadId: string,
): Promise<Outcome & { readonly verdict?: string }> {
  const response = await fetch(`${service.partnerUrl}/v1/verify`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ uploadId }),
    signal: AbortSignal.timeout(60_000),
  });
  const body = (await response.json()) as { verdict?: string; reason?: string };
  return {
    status: response.status,
    reason: body.reason,
    ...(body.verdict === undefined ? {} : { verdict: body.verdict }),
  };
}

async function outcomeOf(response: Response): Promise<Outcome> {
  const body = (await response.json()) as { reason?: string };
  return { status: response.status, reason: body.reason };
}
