import t from 'tap';
import type { DeclarationEnvelope } from '../../src/witness/domain/declaration.js';
import type { EvidenceFact, EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import { CHANNEL_SUPPORT, CHANNELS } from '../../src/witness/domain/trace.js';
import {
  PROJECTION_FORMATS,
  type Projection,
  type ProjectionFormat,
  projectReport,
} from '../../src/witness/projections/project-report.js';
import { sessionEvidence } from './reports.js';

const FORMATS = Object.keys(PROJECTION_FORMATS) as readonly ProjectionFormat[];
const ROLES = ['lyrics', 'composition', 'vocals', 'instruments', 'production', 'artwork', 'video'];
type Answers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Returns a report with a submission for each of the answers. */
function declare(...submissions: readonly Answers[]): EvidenceReport {
  const declarations = submissions.map(
    (answers, at) =>
      ({
        surveyVersion: '2026-11',
        submissionId: `sub_${at + 1}`,
        subject: 'creator_1',
        submittedAt: 1_790_000_000,
        answers: Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== undefined)),
        recordedAt: 1_790_000_060,
        bindingStatus: 'authenticated_post_issuance_record',
      }) as DeclarationEnvelope,
  );
  return { version: 1, facts: [], conflicts: [], unverifiable: [], declarations };
}

function declaredValue(projection: Projection, element: string): string | undefined {
  return projection.members.find((member) => member.element === element)?.value;
}

/** Returns true if a projection breaks what DDEX demands of a delivery, in the words of the projection. */
function breaksDdex(projection: Projection): boolean {
  const recording = declaredValue(projection, 'SoundRecording/ContainsAI');
  const contributions = projection.members
    .filter(({ element }) => element.endsWith('/AiContribution'))
    .map(({ value }) => value);
  if (recording === 'None') return contributions.some((value) => value === 'Partly' || value === 'All');
  // Contributors of the projection are those who were asked, and none of them is of the type GenerativeAI.
  return recording === 'All' && contributions.some((value) => value !== undefined);
}

/** Returns the faults of a projection of the report, or undefined. */
function faultOf(report: EvidenceReport, projection: Projection): string | undefined {
  if (breaksDdex(projection)) return 'consistency rule of DDEX';
  const listed = [...projection.unmapped, ...projection.members.flatMap(({ sources }) => sources)];
  const isBlocked = projection.members.some(({ reason }) => reason === 'answers_contradict');
  for (const { submissionId, answers } of report.declarations)
    for (const dimension of ['aiShareBand', 'aiRoles', 'declaredOrigin'] as const) {
      const isListed = listed.some(
        (source) =>
          source.kind === 'declaration' &&
          source.submissionId === submissionId &&
          source.dimension === dimension,
      );
      const isGiven =
        dimension === 'declaredOrigin'
          ? answers[dimension] === 'generated_material'
          : answers[dimension] !== undefined;
      if (isGiven && !isListed && !isBlocked) return `${dimension} is in no member and not unmapped`;
    }
  for (const { element, status, value, reason, sources, question } of projection.members) {
    if ((status === 'declared') !== (value !== undefined)) return `${element}: status and value`;
    if ((value === undefined) !== (reason !== undefined)) return `${element}: value and reason`;
    if (value !== undefined && sources.length === 0) return `${element}: a value without a source`;
    if ((reason === 'needs_answer') !== (question !== undefined)) return `${element}: question`;
    if (value === 'All') return `${element}: this cannot be declared`;
    for (const source of sources) {
      if (source.kind !== 'declaration') continue;
      const answers = report.declarations.find(({ submissionId }) => submissionId === source.submissionId)
        ?.answers as Answers | undefined;
      const answer = answers?.[source.dimension];
      if (answer === undefined || [answer].flat().toSorted().join(',') !== source.answer)
        return `${element}: a source that is not in the report`;
      if (value !== undefined && source.answer.includes('undisclosed')) return `${element}: from undisclosed`;
    }
  }
  return undefined;
}

t.test(
  'every combination of answers keeps the rules of DDEX and names a source for each value',
  async (t) => {
    const shares = [
      undefined,
      'none',
      'under_quarter',
      'half_to_three_quarters',
      'over_three_quarters',
      'undisclosed',
    ];
    const origins = [undefined, 'from_scratch', 'generated_material', 'undisclosed'];
    const works = [undefined, 'none', 'substantial'];
    const subsets = Array.from({ length: 2 ** ROLES.length }, (_, bits) =>
      ROLES.filter((_, at) => (bits >> at) % 2 === 1),
    );
    const roles = [undefined, ['none'], ['undisclosed'], ['vocals', 'undisclosed'], ...subsets.slice(1)];
    let combinations = 0;
    const faults = new Set<string>();
    for (const aiShareBand of shares)
      for (const declaredOrigin of origins)
        for (const manualWork of works)
          for (const aiRoles of roles) {
            combinations += 1;
            const report = declare({ aiShareBand, declaredOrigin, manualWork, aiRoles });
            for (const format of FORMATS) {
              const fault = faultOf(report, projectReport(report, format));
              if (fault !== undefined) faults.add(`${format}: ${fault}`);
            }
          }
    t.strictSame([combinations, [...faults]], [6 * 4 * 3 * 131, []]);
  },
);

t.test('two submissions keep the rules too, and where they differ nothing is said', async (t) => {
  const answers: readonly Answers[] = [
    {},
    ...['none', 'under_quarter', 'over_three_quarters', 'undisclosed'].map((aiShareBand) => ({
      aiShareBand,
    })),
    ...[['none'], ['vocals'], ['lyrics', 'vocals'], ['artwork']].map((aiRoles) => ({ aiRoles })),
    { aiShareBand: 'none', aiRoles: ['none'] },
    { aiShareBand: 'none', aiRoles: ['vocals'] },
  ];
  const faults = new Set<string>();
  for (const one of answers)
    for (const other of answers)
      for (const format of FORMATS) {
        const report = declare(one, other);
        const fault = faultOf(report, projectReport(report, format));
        if (fault !== undefined) faults.add(`${format}: ${fault}`);
      }
  t.strictSame([...faults], []);
  const split = projectReport(declare({ aiShareBand: 'none' }, { aiShareBand: 'under_quarter' }), 'ddex-432');
  t.match(split, { status: 'needs_review' });
  t.match(
    split.members.find(({ element }) => element === 'SoundRecording/ContainsAI'),
    {
      status: 'unknown',
      reason: 'submissions_disagree',
      sources: [{ submissionId: 'sub_1' }, { submissionId: 'sub_2' }],
    },
  );
  t.equal(
    declaredValue(
      projectReport(
        declare({ aiRoles: ['vocals', 'lyrics'] }, { aiRoles: ['lyrics', 'vocals'] }),
        'ddex-432',
      ),
      'SoundRecording/Contributor[lyrics]/AiContribution',
    ),
    'Partly',
    'the order of words makes no difference',
  );
});

t.test('a conflict, an altered declaration and an attribution each take every value away', async (t) => {
  const clean = declare({ aiShareBand: 'none', aiRoles: ['none'] });
  const fact = (code: string, contentClass: EvidenceFact['contentClass']): EvidenceFact => ({
    code,
    contentClass,
    status: 'needs_review',
  });
  const blocked: readonly (readonly [string, EvidenceReport])[] = [
    ['conflict', { ...clean, conflicts: [fact('a_code_of_tomorrow', 'explicit_conflict')] }],
    [
      'declaration_altered',
      { ...clean, unverifiable: [fact('creator_declaration_altered', 'unverifiable_coverage_gap')] },
    ],
    [
      'evidence_altered',
      { ...clean, unverifiable: [fact('evidence_facts_altered', 'unverifiable_coverage_gap')] },
    ],
    ['attribution_stands_against', { ...clean, facts: [fact('AiLikelySource', 'direct_observation')] }],
  ];
  for (const format of FORMATS) {
    t.equal(projectReport(clean, format).status, 'as_declared');
    t.equal(
      projectReport(clean, format).members.some(({ value }) => value !== undefined),
      true,
    );
    for (const [reason, report] of blocked) {
      const { status, members } = projectReport(report, format);
      t.strictSame(
        [status, ...new Set(members.map(({ reason, value }) => value ?? reason))],
        ['needs_review', ...(format === 'ddex-432' ? ['outside_report'] : []), reason],
        `${format}: ${reason}`,
      );
    }
  }
});

t.test('what each answer becomes', async (t) => {
  const cases: readonly (readonly [ProjectionFormat, string, Answers, string])[] = [
    ['ddex-432', 'SoundRecording/ContainsAI', {}, 'not_declared'],
    ['ddex-432', 'SoundRecording/ContainsAI', { aiShareBand: 'none' }, 'None'],
    ['ddex-432', 'SoundRecording/ContainsAI', { aiRoles: ['none'] }, 'None'],
    ['ddex-432', 'SoundRecording/ContainsAI', { aiShareBand: 'over_three_quarters' }, 'Partly'],
    ['ddex-432', 'SoundRecording/ContainsAI', { aiRoles: ['artwork'] }, 'not_declared'],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { aiShareBand: 'none', aiRoles: ['lyrics'] },
      'answers_contradict',
    ],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { aiShareBand: 'none', aiRoles: ['undisclosed'] },
      'undisclosed',
    ],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { aiShareBand: 'over_three_quarters', declaredOrigin: 'generated_material', manualWork: 'none' },
      'needs_answer',
    ],
    ['ddex-432', 'SoundRecording/ContainsAI', { declaredOrigin: 'generated_material' }, 'Partly'],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { declaredOrigin: 'generated_material', manualWork: 'none' },
      'needs_answer',
    ],
    [
      'ddex-432',
      'SoundRecording/Contributor[vocals]/AiContribution',
      { declaredOrigin: 'generated_material' },
      'needs_answer',
    ],
    [
      'ddex-432',
      'SoundRecording/Contributor[lyrics]/AiContribution',
      { declaredOrigin: 'generated_material' },
      'not_declared',
    ],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { aiShareBand: 'none', disputedAssessment: 'disputed' },
      'assessment_disputed',
    ],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { aiShareBand: 'none', disputedAssessment: 'not_disputed' },
      'None',
    ],
    [
      'ddex-432',
      'SoundRecording/ContainsAI',
      { aiShareBand: 'under_quarter', disputedAssessment: 'disputed' },
      'Partly',
    ],
    ['ddex-432', 'Text/ContainsAI', { aiRoles: ['lyrics'] }, 'needs_answer'],
    ['ddex-432', 'Text/ContainsAI', { aiRoles: ['none'] }, 'None'],
    [
      'ddex-432',
      'Text/ContainsAI',
      { aiRoles: ['none'], disputedAssessment: 'disputed' },
      'assessment_disputed',
    ],
    ['ddex-432', 'Image/ContainsAI', { aiRoles: ['artwork'] }, 'needs_answer'],
    ['ddex-432', 'Video/ContainsAI', { aiRoles: ['none'] }, 'None'],
    ['spotify', 'Vocalist', { aiRoles: ['vocals'] }, 'needs_answer'],
    ['spotify', 'Vocalist', { aiRoles: ['lyrics'] }, 'not_declared'],
    ['spotify', 'Vocalist', { aiRoles: ['none'] }, 'no_credit'],
    ['spotify', 'Lyricist', { aiShareBand: 'over_three_quarters' }, 'not_declared'],
    ['spotify', 'Vocalist', { aiShareBand: 'over_three_quarters' }, 'needs_answer'],
    ['spotify', 'Producer', { declaredOrigin: 'generated_material' }, 'needs_answer'],
    ['spotify', 'Vocalist', { aiRoles: ['none'], disputedAssessment: 'disputed' }, 'assessment_disputed'],
    ['apple', 'Track', { declaredOrigin: 'generated_material' }, 'needs_answer'],
    ['apple', 'Track', { aiShareBand: 'none', disputedAssessment: 'disputed' }, 'assessment_disputed'],
    ['apple', 'Track', { aiShareBand: 'half_to_three_quarters' }, 'tag'],
    ['apple', 'Track', { aiShareBand: 'under_quarter' }, 'needs_answer'],
    ['apple', 'Track', { aiShareBand: 'none' }, 'no_tag'],
    ['apple', 'Composition', { aiRoles: ['lyrics'] }, 'needs_answer'],
    ['apple', 'Artwork', { aiShareBand: 'none' }, 'not_declared'],
    ['apple', 'Track', { aiShareBand: 'a_band_of_tomorrow' }, 'answer_not_known'],
    ['apple', 'Composition', { aiRoles: ['a_role_of_tomorrow'] }, 'answer_not_known'],
  ];
  for (const [format, element, answers, expected] of cases) {
    const name = format === 'apple' ? `ai_transparencies[${element}]` : element;
    const member = projectReport(declare(answers), format).members.find((other) => other.element === name);
    t.equal(member?.value ?? member?.reason, expected, `${format} ${element} ${JSON.stringify(answers)}`);
  }
});

t.test('an answer for which a vocabulary has no element is listed', async (t) => {
  const source = (dimension: string, answer: string) => ({
    kind: 'declaration',
    submissionId: 'sub_1',
    dimension,
    answer,
  });
  const unmapped = (answers: Answers) => projectReport(declare(answers), 'spotify').unmapped;
  t.strictSame(unmapped({ aiRoles: ['composition'] }), [source('aiRoles', 'composition')]);
  t.strictSame(unmapped({ aiRoles: ['composition', 'vocals'] }), [source('aiRoles', 'composition')]);
  t.strictSame(unmapped({ aiShareBand: 'none' }), [source('aiShareBand', 'none')]);
  t.strictSame(unmapped({ aiShareBand: 'under_quarter', manualWork: 'some' }), []);
});

t.test('no channel becomes a value, with any support and any counters', async (t) => {
  for (const answers of [{}, { aiShareBand: 'none' }, { aiRoles: ['vocals'] }]) {
    const bare = declare(answers);
    for (const channel of CHANNELS)
      for (const support of CHANNEL_SUPPORT) {
        const report = { ...bare, session: { evidence: sessionEvidence({ [channel]: support }) } };
        for (const format of FORMATS)
          t.strictSame(projectReport(report, format), projectReport(bare, format), `${channel} ${support}`);
      }
  }
});
