import { defined } from '../core/domain/defined.js';
import type { ReportPageInput, ReportSubject } from '../witness/page/page-input.js';
import { parseReport, UnreadableReport } from '../witness/report/parse-report.js';

type Members = Readonly<Record<string, unknown>>;

/** The names of the members with compatibility data of legacy proofs. */
const LEGACY = ['classification', 'grade', 'interpretation'] as const;

/**
 * Reads a report and its subject from a verification result, a line of `verify --format jsonl`, a proof, a record,
 * a list entry or a bare report.
 * @param service the address of the service that gave the value, if it is known
 * @throws UnreadableReport
 */
export function reportInput(value: unknown, service?: string): ReportPageInput {
  const given = membersOf(value);
  const source = 'result' in given ? membersOf(given['result']) : given;
  if ('facts' in source && 'conflicts' in source) return { proof: {}, report: parseReport(source) };
  const { evidenceReport, processNote } = source;
  const note = noteOf(processNote);
  const subject = subjectOf(source);
  // Any JSON would otherwise look like a proof without a verdict.
  if (subject.verdict === undefined && subject.proofId === undefined && evidenceReport === undefined)
    throw new UnreadableReport('this is not a verification result, a proof, a record or a report');
  return {
    proof: { ...subject, ...(service === undefined ? {} : { service }) },
    ...(evidenceReport === undefined ? {} : { report: parseReport(evidenceReport) }),
    ...(note === undefined ? {} : { note }),
  };
}

function subjectOf(source: Members): ReportSubject {
  const decision = membersOf(source['decision']);
  const song = membersOf(source['song']);
  const delivery = membersOf(source['delivery']);
  const isEmbedded = source['verdict'] === 'valid' && decision['credentialCarrier'] === 'embedded';
  const carrier = textOf(source['carrier']) ?? textOf(delivery['carrier']);
  const legacy = LEGACY.flatMap((name): [string, string][] => {
    const value = source[name];
    return value === undefined ? [] : [[name, typeof value === 'string' ? value : JSON.stringify(value)]];
  });
  return Object.fromEntries(
    Object.entries({
      proofId: textOf(source['proofId']),
      title: textOf(song['title']),
      issuedAt: numberOf(source['issuedAt']),
      carrier: carrier ?? textOf(decision['credentialCarrier']),
      boundAudioSha256: textOf(source['boundAudioSha256']),
      fileSha256: textOf(membersOf(source['audio'])['sha256']) ?? textOf(delivery['sha256']),
      // A credential beside a sidecar may be of another issuer.
      issuer:
        textOf(source['issuer']) ??
        (isEmbedded ? textOf(membersOf(source['embeddedCredential'])['issuer']) : undefined),
      declared: declaredOf(song['declared']),
      verdict: textOf(source['verdict']),
      verifiedAt: numberOf(source['verifiedAt']),
      decision:
        textOf(decision['status']) === undefined
          ? undefined
          : {
              status: textOf(decision['status'])!,
              reasons: textsOf(decision['reasons']),
              recommendedAction: textOf(decision['recommendedAction']) ?? '',
              ...(textOf(decision['sourceDetailCoverage']) === undefined
                ? {}
                : { sourceDetailCoverage: textOf(decision['sourceDetailCoverage'])! }),
            },
      legacy: legacy.length === 0 ? undefined : Object.fromEntries(legacy),
    }).filter(([, member]) => member !== undefined),
  );
}

function noteOf(value: unknown): ReportPageInput['note'] {
  const note = membersOf(value);
  const policyVersion = textOf(note['policyVersion']);
  const given = Array.isArray(note['lines']) ? note['lines'] : [];
  const lines = textsOf(given.map((line) => membersOf(line)['text'] ?? line));
  if (policyVersion === undefined && lines.length === 0) return undefined;
  return policyVersion === undefined ? { lines } : { policyVersion, lines };
}

function declaredOf(value: unknown): ReportSubject['declared'] {
  const { artist, release, isrc } = membersOf(value);
  const declared = defined({ artist: textOf(artist), release: textOf(release), isrc: textOf(isrc) });
  return Object.keys(declared).length === 0 ? undefined : declared;
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : [];
}
