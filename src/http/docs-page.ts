import { createHash } from 'node:crypto';
import type { OpenApiDocument } from '../contract/openapi.js';
import type { Answer } from './answer.js';
export function docsAnswer(document: OpenApiDocument): Answer {
  return { kind: 'text', status: 200, mediaType: 'text/html; charset=utf-8', text: JSON.stringify(document.info), headers: { 'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update('').digest('base64')}'` } };
}
