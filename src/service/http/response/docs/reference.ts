import {
  DECISION_REASONS,
  PROFILE_FAULTS,
  UNCHECKED_PARTS,
} from '../../../../core/domain/reference/reasons.js';
import {
  ACTION_REFERENCE,
  STATUS_REFERENCE,
  VERDICT_REFERENCE,
} from '../../../../core/domain/reference/verdicts.js';
import { EVIDENCE_CODES } from '../../../../witness/domain/evidence-codes.js';
import { ERROR_CODE_REFERENCE, ERROR_REASON_REFERENCE } from '../../../domain/reference/errors.js';

/** A value of the contract with its texts, as Markdown. */
export interface ReferenceSection {
  /** The fragment of `/docs` that shows this section, without the `#`. */
  readonly anchor: string;
  readonly word: string;
  /** The paragraphs of the section. */
  readonly paragraphs: readonly string[];
}

export interface ReferenceChapter {
  readonly title: string;
  readonly introduction: string;
  readonly sections: readonly ReferenceSection[];
}

interface Texts {
  readonly meaning: string;
  readonly caller?: string;
  readonly artist?: string;
}

function sectionsOf(
  kind: string,
  entries: Readonly<Record<string, Texts>>,
  note?: string,
): readonly ReferenceSection[] {
  return Object.entries(entries).map(([word, { meaning, caller, artist }]) => ({
    anchor: `${kind}-${word}`,
    word,
    paragraphs: [
      meaning,
      ...(caller === undefined ? [] : [`**What to do.** ${caller}`]),
      ...(artist === undefined ? [] : [`**Text for the artist.** ${artist}`]),
      // The search shows the start of a section, so its meaning comes before its place.
      ...(note === undefined ? [] : [note]),
    ],
  }));
}

function meaningsOnly(
  kind: string,
  meanings: Readonly<Record<string, string>>,
  note: string,
): readonly ReferenceSection[] {
  const texts = Object.entries(meanings).map(([word, meaning]) => [word, { meaning }] as const);
  return sectionsOf(kind, Object.fromEntries(texts), note);
}

/** The registries of verdicts, decisions, reports and errors, as chapters of the documentation. */
export const REFERENCE: readonly ReferenceChapter[] = [
  {
    title: 'Verdicts',
    introduction: 'The verdict of a verification. Treat an unknown verdict as a failed verification.',
    sections: sectionsOf('verdict', VERDICT_REFERENCE),
  },
  {
    title: 'Decision statuses',
    introduction: 'The member `decision.status` of a verification.',
    sections: sectionsOf('status', STATUS_REFERENCE),
  },
  {
    title: 'Recommended actions',
    introduction: 'The member `decision.recommendedAction` of a verification.',
    sections: sectionsOf('action', ACTION_REFERENCE),
  },
  {
    title: 'Decision reasons',
    introduction: 'The values of `decision.reasons`. The first reason decided the verdict.',
    sections: Object.entries(DECISION_REASONS).flatMap(([verdict, reasons]) =>
      sectionsOf('reason', reasons, `A reason for the verdict [\`${verdict}\`](#verdict-${verdict}).`),
    ),
  },
  {
    title: 'Error codes',
    introduction:
      'The member `code` of an error. Treat an unknown code by the class of its status, 4xx or 5xx.',
    sections: sectionsOf('error', ERROR_CODE_REFERENCE),
  },
  {
    title: 'Error reasons',
    introduction: 'The member `reason` of an error, which is the exact cause.',
    sections: sectionsOf('error', ERROR_REASON_REFERENCE),
  },
  {
    title: 'Evidence codes',
    introduction: 'Each fact of an evidence report has one of these codes. Show an unknown code as it is.',
    sections: EVIDENCE_CODES.map(({ code, contentClass, meaning, sentence, since }) => ({
      anchor: `code-${code}`,
      word: code,
      paragraphs: [
        `A code of the class \`${contentClass}\`, since version ${since}.`,
        meaning,
        `**Text for a reader.** ${sentence}`,
      ],
    })),
  },
  {
    title: 'Credential reports',
    introduction: 'The reasons in the report about the embedded credential.',
    sections: [
      ...meaningsOnly('profile', PROFILE_FAULTS, 'A reason for `failed` in a credential report.'),
      ...meaningsOnly('unchecked', UNCHECKED_PARTS, 'A reason for `not_checked` in a credential report.'),
    ],
  },
];
