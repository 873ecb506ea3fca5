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

/** The schema of a count: a whole number from 0. */
const count = (description: string) => z.int().min(0).meta({ description });
const seconds = (description: string) => z.number().min(0).meta({ description });
const slug = (description: string) => z.string().meta({ description });

const counterSchema = z
  .object({
    status: knownWords(COUNTER_STATUSES).meta({
      description:
        '`unsupported`: the agent does not monitor this. `unknown`: the agent cannot determine this, or monitored it with gaps. Neither means zero.',
    }),
    value: count(
      'The count. Present only with `observed` and `not_observed`. If absent, show the status, never 0.',
    ).exactOptional(),
  })
  .meta({ id: 'EvidenceCounter', description: 'A count of one kind of activity in the session.' });

const gapSchema = z.object({
  fromSeconds: seconds('Start, in seconds from the start of the session.'),
  toSeconds: seconds('End, in seconds from the start of the session.'),
  reason: slug('Why the channel was not monitored.'),
});

const coverageSchema = z
  .object({
    support: knownWords(CHANNEL_SUPPORT).meta({
      description:
        'Whether the agent sees all, some or no activity of the channel, or does not know. Only `supported` without gaps is complete.',
    }),
    exact: count(
      'Actions observed as they happened. Absent if the channel was not monitored.',
    ).exactOptional(),
    interval: count(
      'Actions inferred by comparing the states before and after. Their order and exact time are unknown.',
    ).exactOptional(),
    gaps: z
      .array(gapSchema)
      .meta({ description: 'The first periods in which the channel was not monitored.' }),
    gapCount: count('Number of all such periods. Absent if the channel was never monitored.').exactOptional(),
  })
  .meta({ id: 'ChannelCoverage', description: 'How completely one channel of the session was monitored.' });

const recordingSchema = z.object({
  durationSeconds: seconds('Length of the take, in seconds.'),
  realTime: knownWords(REAL_TIME_STATUSES).meta({
    description:
      '`observed`: the agent saw the take grow in real time from a hardware input. Otherwise `unknown`, which does not imply any wrongdoing.',
  }),
  input: knownWords(TAKE_INPUTS).meta({
    description: 'What the input was connected to during the recording, as far as observed.',
  }),
  growthSteps: count('Number of observed steps in which the take grew.'),
  placementCount: count(
    'Number of clips in the arrangement that use the take. Absent if clips were not monitored.',
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

/** The session evidence (rule 9.22). */
const sessionEvidenceSchema = z
  .object({
    traceSha256: sha256Schema.meta({
      description: 'SHA-256 of the whole signed capture trace. The signed statement contains it.',
    }),
    traceBytes: count('Size of the trace, in bytes.'),
    traceVersion: count('Format version of the trace.'),
    simulated: z
      .boolean()
      .meta({ description: 'True for a generated test trace. It is not evidence of a real session.' }),
    adapter: z
      .object({
        name: slug('Type of the agent, such as `ardour`.'),
        version: slug('Version of the agent.'),
        dawVersion: slug('Version of the audio workstation, if known.').exactOptional(),
      })
      .meta({ description: 'Agent that recorded the session activity.' }),
    device: z
      .object({
        deviceId: slug("SHA-256 of the device's public key."),
        standing: knownWords(DEVICE_STANDINGS).meta({
          description: 'Whether the operator had enrolled or revoked the device when the proof was issued.',
        }),
      })
      .meta({ description: 'Device that signed the trace.' }),
    startedAt: timestampSchema.meta({
      description: "Start of the session, in unix seconds by the device's clock.",
    }),
    durationSeconds: seconds('Length of the signed session, in seconds.'),
    sealed: z.boolean().meta({ description: "True if the trace ends with the device's final signature." }),
    events: count('Number of events that a valid signature covers.'),
    counters: z
      .object(counters)
      .meta({ description: 'Activity counts by kind. Later versions may add counters.' }),
    coverage: z
      .object(coverage)
      .meta({ description: 'Monitoring coverage by channel. Later versions may add channels.' }),
    recordings: z.array(recordingSchema).meta({
      description:
        'Takes, longest first. A long list is shortened. `takesRecorded` counts all takes except those recorded inside the workstation.',
    }),
    activity: z
      .object({
        bucketSeconds: seconds('Length of one interval, in seconds.'),
        buckets: z
          .array(
            z.object({
              atSeconds: seconds('Start of the interval, in seconds from the start of the session.'),
              edits: count(
                'Edits observed in the interval. Absent if none was observed and some edit channel was not monitored.',
              ).exactOptional(),
              recordings: count(
                'Recordings observed in the interval. Absent if none was observed and audio or MIDI recording was not monitored.',
              ).exactOptional(),
              imports: count(
                'Imports observed in the interval. Absent if none was observed and imports were not monitored.',
              ).exactOptional(),
            }),
          )
          .meta({ description: 'Intervals with observed activity, in order of time.' }),
      })
      .meta({ description: 'Activity over the course of the session.' }),
    export: z
      .object({
        fileSha256: sha256Schema.meta({ description: 'SHA-256 of the last exported file.' }),
        issuedAudio: knownWords(EXPORT_MATCHES).meta({
          description: 'Whether the exported file is the issued audio.',
        }),
        durationSeconds: seconds('Length of the export, in seconds.').exactOptional(),
        rerender: knownWords(EVENTS['export.finished'].fields.rerender).meta({
          description: 'Result of rendering the session again: matched, differed, or not tried.',
        }),
      })
      .meta({ description: 'The last export of the session. Absent if no export was observed.' })
      .exactOptional(),
  })
  .meta({
    id: 'SessionEvidence',
    description:
      'Result of replaying a signed capture trace. It never states whether people or machines made the music.',
  });

/** The session of a proof that was issued with a capture trace. */
export const sessionSchema = z
  .object({ evidence: sessionEvidenceSchema.meta({ description: 'Result of replaying the trace.' }) })
  .meta({ description: 'The production session. Present if the proof was issued with a capture trace.' });

const detectionSchema = z.object({
  detector: slug('Detector that the issuing side used.'),
  detectorVersion: slug('Version of the detector.'),
  likelihood: z
    .object({
      value: z.number().min(0).max(1).meta({ description: 'The probability, from 0 to 1.' }),
      unit: knownWords(['ratio']).meta({ description: 'Unit of the value.' }),
    })
    .meta({
      description: 'Probability that the file was generated. It is not a share of the timeline.',
    })
    .exactOptional(),
  generator: slug('Generator that the file is attributed to.').exactOptional(),
});

/** The schema of an imported source (rule 9.24). */
export const importedSourceSchema = z
  .object({
    sourceId: identifierSchema.meta({ description: 'Id within this report: `s1`, `s2` and so on.' }),
    manner: knownWords(EVENTS['import.added'].fields.manner).meta({
      description: 'How the file was brought into the session.',
    }),
    samplesSha256: sha256Schema
      .meta({ description: 'SHA-256 of the samples as stored in the session.' })
      .exactOptional(),
    originalSha256: sha256Schema
      .meta({ description: 'SHA-256 of the whole original file, if it was found.' })
      .exactOptional(),
    durationSeconds: seconds('Length of the source, in seconds.').exactOptional(),
    placements: z
      .object({
        count: count('Number of clips that used the source at the last observation.'),
        approximateSeconds: seconds('Total length of these clips, in seconds. Overlaps count once.'),
        spans: z
          .array(
            z.object({
              startSeconds: seconds('Start, in seconds of the arrangement.'),
              endSeconds: seconds('End, in seconds of the arrangement.'),
            }),
          )
          .meta({ description: 'The first spans of the arrangement that the source covers.' }),
      })
      .meta({
        description:
          'Where the arrangement uses the source or material derived from it. Says nothing about what is audible in the mix. Absent if clips were not monitored.',
      })
      .exactOptional(),
    detections: z
      .array(detectionSchema)
      .meta({ description: 'Detector results that the issuing side supplied.' })
      .exactOptional(),
  })
  .meta({ id: 'ImportedSource', description: 'A file whose import into the session was observed.' });

const range = (description: string) =>
  z
    .object({
      start: z.number().meta({ description: 'Start of the range.' }),
      end: z.number().meta({ description: 'End of the range.' }),
    })
    .meta({ description });

/** The source detail (rule 9.26). */
export const sourceDetailSchema = z
  .object({
    version: z.int().min(2).meta({ description: 'Version of the layout.' }),
    consentVersion: identifierSchema.meta({
      description:
        'Version of the consent text that the creator agreed to. The detail is omitted after the creator revokes the consent.',
    }),
    observedAtSeconds: seconds(
      'When the agent last finished reading the source map, in seconds from the start of the session.',
    ).exactOptional(),
    tracks: z
      .array(
        z.object({
          trackId: identifierSchema.meta({ description: 'Id of the track within this report.' }),
          type: knownWords(EVENTS['track.added'].fields.type).meta({ description: 'Type of the track.' }),
          state: knownWords(PLACEMENT_STATES).meta({
            description: 'Last observed state: still present, or removed.',
          }),
        }),
      )
      .meta({ description: 'Tracks. A long list is shortened.' }),
    trackCount: count('Number of all tracks. Absent if tracks were not monitored.').exactOptional(),
    placements: z
      .array(
        z.object({
          placementId: identifierSchema.meta({ description: 'Id of the clip within this report.' }),
          trackId: identifierSchema.meta({ description: 'Id of the track that holds the clip.' }),
          sourceId: identifierSchema
            .meta({ description: 'Imported source that the clip plays, if any.' })
            .exactOptional(),
          origin: knownWords(PLACEMENT_ORIGINS).meta({
            description: 'Origin of the material, as far as it was observed.',
          }),
          beats: range(
            "Position in the workstation's beats. Absent if the tempo is unknown.",
          ).exactOptional(),
          approximateSeconds: range(
            'Position in seconds, estimated with the last observed tempo. Absent if the tempo is unknown.',
          ).exactOptional(),
          state: knownWords(PLACEMENT_STATES).meta({
            description: 'Last observed state: still present, or removed.',
          }),
          edits: z
            .int()
            .min(0)
            .max(1000)
            .meta({ description: 'Number of edits. Counts above 1000 are reported as 1000.' }),
        }),
      )
      .meta({ description: 'Clips in the arrangement. A long list is shortened.' }),
    placementCount: count('Number of all clips. Absent if clips were not monitored.').exactOptional(),
  })
  .meta({
    id: 'SourceDetail',
    description:
      "Structure of the arrangement. Only approved partners get it, and only with the creator's consent. It says nothing about the final mix.",
  });
