import { z } from 'zod';
import {
  COUNTER_STATUSES,
  COUNTER_WORDS,
  COUNTERS,
  type CounterName,
  EXPORT_MATCHES,
  PLACEMENT_ORIGINS,
  PLACEMENT_STATES,
  REAL_TIME_STATUSES,
  TAKE_INPUTS,
} from '../../domain/session-evidence.js';
import {
  CHANNEL_SUPPORT,
  CHANNEL_WORDS,
  CHANNELS,
  type Channel,
  DEVICE_STANDINGS,
  EVENTS,
} from '../../domain/trace.js';
import { identifierSchema, knownWords, sha256Schema, timestampSchema } from '../primitives.js';

/** A whole number of things. */
const count = (description: string) => z.int().min(0).meta({ description });
const seconds = (description: string) => z.number().min(0).meta({ description });
const slug = (description: string) => z.string().meta({ description });

const counterSchema = z
  .object({
    status: knownWords(COUNTER_STATUSES).meta({
      description:
        '`unsupported`: the adapter does not look; `unknown`: it cannot tell, or looked with gaps. Neither is a zero.',
    }),
    value: count(
      'How many; with `observed` and `not_observed` alone. Show its absence as the status, never as 0.',
    ).exactOptional(),
  })
  .meta({ id: 'EvidenceCounter', description: 'An activity counter of the session.' });

const gapSchema = z.object({
  fromSeconds: seconds('Start, in seconds of the session.'),
  toSeconds: seconds('End, in seconds of the session.'),
  reason: slug('Why nobody looked.'),
});

const coverageSchema = z
  .object({
    support: knownWords(CHANNEL_SUPPORT).meta({
      description:
        'Whether the adapter sees every act of the channel, some, none, or cannot tell. Only `supported` without gaps is complete.',
    }),
    exact: count('Acts that were witnessed when they happened; absent where nobody looks.').exactOptional(),
    interval: count(
      'Acts of which only the states before and after were seen: order and time are not known.',
    ).exactOptional(),
    gaps: z.array(gapSchema).meta({ description: 'The first times in which the channel was not watched.' }),
    gapCount: count('Count of all such times; absent where nobody looks.').exactOptional(),
  })
  .meta({ id: 'ChannelCoverage', description: 'How far a channel of the session was watched.' });

const recordingSchema = z.object({
  durationSeconds: seconds('Length of the take.'),
  realTime: knownWords(REAL_TIME_STATUSES).meta({
    description:
      '`observed`: the take was seen to grow at its true rate, from an input that was seen to be hardware. Else `unknown`, which is no accusation.',
  }),
  input: knownWords(TAKE_INPUTS).meta({
    description: 'What the input was connected to while it ran, where seen.',
  }),
  growthSteps: count('Steps of growth that were seen.'),
  placementCount: count(
    'Places of the arrangement in which the take lies; absent where nobody looks.',
  ).exactOptional(),
});

const counters = Object.fromEntries(
  (Object.keys(COUNTERS) as CounterName[]).map((name) => [
    name,
    counterSchema.meta({ description: `${COUNTER_WORDS[name]}.` }),
  ]),
) as Readonly<Record<CounterName, typeof counterSchema>>;
const coverage = Object.fromEntries(
  CHANNELS.map((channel) => [channel, coverageSchema.meta({ description: `${CHANNEL_WORDS[channel]}.` })]),
) as Readonly<Record<Channel, typeof coverageSchema>>;

/** Session evidence (rule 9.22). */
const sessionEvidenceSchema = z
  .object({
    traceSha256: sha256Schema.meta({
      description: 'Digest of the whole signed capture trace; the signed statement names it.',
    }),
    traceBytes: count('Bytes of the trace.'),
    traceVersion: count("Version of the trace's format."),
    simulated: z.boolean().meta({ description: 'True for a generated trace, which witnesses nothing.' }),
    adapter: z
      .object({
        name: slug('Kind of the agent.'),
        version: slug('Version of the agent.'),
        dawVersion: slug('Version of the workstation, where it is known.').exactOptional(),
      })
      .meta({ description: 'Agent that witnessed the session.' }),
    device: z
      .object({
        deviceId: slug("SHA-256 of the device's public key."),
        standing: knownWords(DEVICE_STANDINGS).meta({
          description: 'Standing of the device with the operator at the time of issuing.',
        }),
      })
      .meta({ description: 'Device that signed the trace.' }),
    startedAt: timestampSchema.meta({
      description: "Start of the session, unix seconds by the device's clock.",
    }),
    durationSeconds: seconds('Length of the signed session.'),
    sealed: z.boolean().meta({ description: "True where the trace ends with the device's final signature." }),
    events: count('Events that a valid signature covers.'),
    counters: z.object(counters).meta({ description: 'What was done, by kind. Counters may be added.' }),
    coverage: z.object(coverage).meta({ description: 'By channel. Channels may be added.' }),
    recordings: z
      .array(recordingSchema)
      .meta({ description: 'Takes, longest first; long lists are cut, and `takesRecorded` counts all.' }),
    activity: z
      .object({
        bucketSeconds: seconds('Length of a stretch.'),
        buckets: z
          .array(
            z.object({
              atSeconds: seconds('Start of the stretch, in seconds of the session.'),
              edits: count(
                'Edits that were seen in it; absent where none was seen and not all are looked at.',
              ).exactOptional(),
              recordings: count('Recordings; absent where nobody looks.').exactOptional(),
              imports: count('Imports; absent where nobody looks.').exactOptional(),
            }),
          )
          .meta({ description: 'Stretches, in order.' }),
      })
      .meta({ description: 'Acts over the time of the session.' }),
    export: z
      .object({
        fileSha256: sha256Schema.meta({ description: 'Digest of the file that was exported last.' }),
        issuedAudio: knownWords(EXPORT_MATCHES).meta({
          description: 'Whether it is the audio that was issued.',
        }),
        durationSeconds: seconds('Length of the export.').exactOptional(),
        rerender: knownWords(EVENTS['export.finished'].fields.rerender).meta({
          description: 'Outcome of rendering the session again, where the workstation was at hand.',
        }),
      })
      .meta({ description: 'Export of the session; absent where none was seen.' })
      .exactOptional(),
  })
  .meta({
    id: 'SessionEvidence',
    description: 'What the replay of a signed capture trace tells. It never says who or what made the music.',
  });

/** Evidence of a session, of proofs that were issued with a capture trace. */
export const sessionSchema = z
  .object({ evidence: sessionEvidenceSchema.meta({ description: 'Result of replaying the trace.' }) })
  .meta({ description: 'Of proofs that were issued with a capture trace.' });

const detectionSchema = z.object({
  detector: slug('Detector that the issuing side used.'),
  detectorVersion: slug('Its version.'),
  likelihood: z
    .object({
      value: z.number().min(0).max(1).meta({ description: 'From 0 to 1.' }),
      unit: knownWords(['ratio']).meta({ description: 'Unit of the value.' }),
    })
    .meta({
      description: 'Probability that the file was generated. It is no share of the timeline.',
    })
    .exactOptional(),
  generator: slug('Generator that the file is attributed to.').exactOptional(),
});

/** An imported source (rule 9.24). */
export const importedSourceSchema = z
  .object({
    sourceId: identifierSchema.meta({ description: 'Local to the report: `s1`, `s2`, ...' }),
    manner: knownWords(EVENTS['import.added'].fields.manner).meta({
      description: 'How the file came into the session.',
    }),
    samplesSha256: sha256Schema
      .meta({ description: 'Digest of the samples as the session held them.' })
      .exactOptional(),
    originalSha256: sha256Schema
      .meta({ description: 'Digest of the whole file that they were found to come from.' })
      .exactOptional(),
    durationSeconds: seconds('Length of the source.').exactOptional(),
    placements: z
      .object({
        count: count('Places of the arrangement in which it lay at the last observation.'),
        approximateSeconds: seconds('Their length together, without counting overlaps twice.'),
        spans: z
          .array(z.object({ startSeconds: seconds('Start.'), endSeconds: seconds('End.') }))
          .meta({ description: 'The first of them, in seconds of the arrangement.' }),
      })
      .meta({
        description:
          'Where it, or what was made of it, sits in the arrangement; says nothing on what the mix lets hear. Absent where nobody looks.',
      })
      .exactOptional(),
    detections: z
      .array(detectionSchema)
      .meta({ description: 'Results that the issuing side supplied.' })
      .exactOptional(),
  })
  .meta({ id: 'ImportedSource', description: 'A file whose import into the session was witnessed.' });

const range = (description: string) =>
  z
    .object({
      start: z.number().meta({ description: 'Start.' }),
      end: z.number().meta({ description: 'End.' }),
    })
    .meta({ description });

/** Source detail (rule 9.26). */
export const sourceDetailSchema = z
  .object({
    version: z.int().min(2).meta({ description: 'Version of the layout.' }),
    consentVersion: identifierSchema.meta({
      description: "The creator's consent under which it is delivered; revoked, the detail is gone.",
    }),
    observedAtSeconds: seconds(
      'Seconds of the signed session at the latest completed observation of the source map.',
    ).exactOptional(),
    tracks: z
      .array(
        z.object({
          trackId: identifierSchema.meta({ description: 'Local to the report.' }),
          type: knownWords(EVENTS['track.added'].fields.type).meta({ description: 'Kind of the track.' }),
          state: knownWords(PLACEMENT_STATES).meta({ description: 'Last observed state.' }),
        }),
      )
      .meta({ description: 'Tracks; long lists are cut.' }),
    trackCount: count('Count of all tracks; absent where nobody looks at them.').exactOptional(),
    placements: z
      .array(
        z.object({
          placementId: identifierSchema.meta({ description: 'Local to the report.' }),
          trackId: identifierSchema.meta({ description: 'Track on which it lies.' }),
          sourceId: identifierSchema
            .meta({ description: 'Imported source that it shows, if it shows one.' })
            .exactOptional(),
          origin: knownWords(PLACEMENT_ORIGINS).meta({
            description: 'How the material came to be, as far as that was witnessed.',
          }),
          beats: range("The workstation's beats; absent where its tempo is not known.").exactOptional(),
          approximateSeconds: range(
            'Estimated with the tempo as it was last observed; absent where it is not known.',
          ).exactOptional(),
          state: knownWords(PLACEMENT_STATES).meta({ description: 'Last observed state.' }),
          edits: z.int().min(0).max(1000).meta({ description: 'Edits, 1000 at most.' }),
        }),
      )
      .meta({ description: 'Placements; long lists are cut.' }),
    placementCount: count('Count of all placements; absent where nobody looks at them.').exactOptional(),
  })
  .meta({
    id: 'SourceDetail',
    description:
      "Structure of the arrangement, for approved partners and with the creator's consent. It claims nothing on the final mix.",
  });
