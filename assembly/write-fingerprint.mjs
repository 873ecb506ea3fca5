/**
 * Writes src/core/engine/core-fingerprint.ts from dist/core.wasm. Run by `npm run build:fingerprint` after a
 * change of the core.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const wasm = readFileSync(new URL('../dist/core.wasm', import.meta.url));
const fingerprint = createHash('sha256').update(wasm).digest('hex');
writeFileSync(
  new URL('../src/core/engine/core-fingerprint.ts', import.meta.url),
  `/** The SHA-256 of dist/core.wasm. Written by \`npm run build:fingerprint\`. */\nexport const CORE_FINGERPRINT = '${fingerprint}';\n`,
);
