import type { EncodedJson } from '../../core/domain/encoded-json.js';
import type { EvidenceReport } from '../../witness/domain/evidence-report.js';
import type { ROUTES } from './routes/routes.js';
import type { ResponseBodyOf } from './validation.js';

/** The result of the operation of a route: the JSON body of its response, as its schema declares it. */
export type ResultOf<Id extends keyof typeof ROUTES> = ResponseBodyOf<(typeof ROUTES)[Id]>;

/** A result whose evidence report may already be encoded. */
export type Reported<Result> = Omit<Result, 'evidenceReport'> & {
  readonly evidenceReport?: EvidenceReport | EncodedJson<EvidenceReport>;
};
