import { readFileSync } from 'node:fs';
import t from 'tap';
import type { Declaration, SurveyAnswers } from '../../src/domain/declaration.js';
import type { RuleInputs } from '../../src/domain/evidence.js';
import { concludeFromDeclarations, concludeFromTrace, EVIDENCE_RULES } from '../../src/evidence/rules.js';

function codes(inputs: RuleInputs, ...answers: readonly SurveyAnswers[]): readonly string[] {
  const declarations = answers.map(
    (given, index): Declaration => ({
      surveyVersion: '1',
      submissionId: `sub_${index}`,
      subject: 'creator_1',
      submittedAt: 1,
      answers: given,
    }),
  );
  return [...concludeFromTrace(inputs), ...concludeFromDeclarations(inputs, declarations)].map(
    ({ code }) => code,
  );
}

const CASES: Readonly<Record<string, readonly [RuleInputs, SurveyAnswers, RuleInputs, SurveyAnswers]>> = {
  placements_without_recording_or_midi_entry: [
    { placements: 1, takes: 0, midiNotes: 0 },
    {},
    { placements: 1, takes: 1, midiNotes: 0 },
    {},
  ],
  imports_cover_most_of_export: [
    { importedSeconds: 51, exportSeconds: 100 },
    {},
    { importedSeconds: 50, exportSeconds: 100 },
    {},
  ],
  activity_after_export: [{ editsAfterExport: 1 }, {}, { editsAfterExport: 0 }, {}],
  edits_only_of_imported_material: [
    { clipEdits: 2, clipEditsOfImports: 2 },
    {},
    { clipEdits: 2, clipEditsOfImports: 1 },
    {},
  ],
  observed_import_vs_creator_origin_declaration: [
    { imports: 1 },
    { declaredOrigin: 'from_scratch' },
    { imports: 1 },
    { declaredOrigin: 'own_material' },
  ],
  declared_manual_work_vs_witnessed_input: [
    { takes: 0, midiNotes: 0 },
    { manualWork: 'entire' },
    { takes: 0, midiNotes: 0 },
    { manualWork: 'some' },
  ],
  attributed_import_vs_creator_ai_declaration: [
    { attributedImports: 1 },
    { aiRoles: ['none'] },
    { attributedImports: 1 },
    { aiRoles: ['vocals'] },
  ],
  contradictory_declarations: [
    {},
    { aiShareBand: 'none', aiRoles: ['vocals'] },
    {},
    { aiShareBand: 'none', aiRoles: ['artwork'] },
  ],
};

t.test('each rule fires where it applies, and not beside it, nor without one of its inputs', async (t) => {
  t.strictSame(
    Object.keys(CASES),
    EVIDENCE_RULES.map(({ code }) => code),
  );
  for (const { code, inputs } of EVIDENCE_RULES) {
    const [fires, answers, not, others] = CASES[code]!;
    t.strictSame(codes(fires, answers), [code]);
    t.strictSame(codes(not, others), [], `${code}: not`);
    for (const name of inputs) {
      const { [name]: _absent, ...rest } = fires;
      t.strictSame(codes(rest, answers), [], `${code} without ${name}`);
    }
  }
});

t.test('opposite submissions are a conflict for each pair of answers', async (t) => {
  t.strictSame(
    codes(
      {},
      { declaredOrigin: 'from_scratch', aiShareBand: 'none' },
      { declaredOrigin: 'generated_material', aiShareBand: 'over_three_quarters' },
    ),
    Array(4).fill('contradictory_declarations'),
  );
  t.strictSame(
    codes({}, { aiShareBand: 'under_quarter' }, { aiShareBand: 'quarter_to_half' }),
    [],
    'neighbours',
  );
});

t.test('the page lists every rule with its version', async (t) => {
  const page = readFileSync('docs/evidence.md', 'utf8');
  for (const { code, version } of EVIDENCE_RULES) t.ok(page.includes(`| \`${code}\` | ${version} |`), code);
});
