/**
 * Child process: the real partner listener and form reader in front of an engine that copies into slabs and
 * hashes nothing.
 */
import { createIds, systemClock } from '../../src/service/adapters/system/system.js';
import { MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import { createPartnerListener } from '../../src/service/http/partner-listener.js';
import type { PartnerOperations } from '../../src/service/operations/operations.js';
import { answerCalls } from '../service/child.js';
import { probe } from '../service/process-use.js';
import { AcknowledgingEngine } from './acknowledging-engine.js';

const engine = new AcknowledgingEngine();
const listener = createPartnerListener({
  ids: createIds(systemClock),
  requestLog: { request: () => undefined },
  observer: {
    verdict: () => undefined,
    upload: () => undefined,
    displaced: () => undefined,
    refused: () => undefined,
    issued: () => undefined,
    productEvent: () => undefined,
    events: () => undefined,
    fault: (where, error) => console.error(where, error),
  },
  build: { version: '0', commit: 'bench', deployedAt: 0, environment: 'beta' },
  // Only the post of an upload is measured here.
  operations: {
    until() {
      return this;
    },
    async receiveUpload(uploadId: string) {
      const ingest = engine.open();
      return {
        maxBytes: MAX_UPLOAD_BYTES,

        signal: ingest.signal,
        write: (chunk: Uint8Array) => ingest.write(chunk),
        async finish() {
          const { bytes, sha256 } = await ingest.end();
          return { uploadId, bytes, sha256 };
        },
        abort: () => ingest.abort(),
      };
    },
  } as unknown as PartnerOperations,
});

const methods = { ...probe, listen: async () => (await listener.listen(0, '127.0.0.1')).port };
export type SlabSink = typeof methods;

answerCalls(methods);
