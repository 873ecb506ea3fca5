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
} from '../../../witness/domain/session-evidence.js';
import {
  CHANNEL_SUPPORT,
  CHANNEL_WORDS,
  CHANNELS,
  type Channel,
  DEVICE_STANDINGS,
  EVENTS,
} from '../../../witness/domain/trace.js';
import { identifierSchema, knownWords, sha256Schema, timestampSchema } from '../primitives.js';

/** Returns the schema of a count, which is a whole number from 0. */
const count = (description: string) => z.int().min(0).meta({ description });
const seconds = (description: string) => z.number().min(0).meta({ description });
const slug = (description: string) => z.string().meta({ description });

const counterSchema = z
  .object({
    status: knownWords(COUNTER_STATUSES).meta({
      description:
        '`observed`: there was at least one action. `not_observed`: the agent monitored this activity throughout and there was none. `unsupported`: the agent does not monitor this activity. `unknown`: the number cannot be determined, because of gaps or an incomplete trace, for example. `unsupported` and `unknown` do not mean zero.',
    }),
    value: count(
      'Number of actions. Present only if the status is `observed` or `not_observed`. If the number is absent, show the status, never 0.',
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
      'Number of actions that the agent reported as they happened. Absent, instead of 0, if the channel was not monitored.',
    ).exactOptional(),
    interval: count(
      'Number of actions that the agent found by comparing two states of the session. Their order and exact time are unknown. Absent, instead of 0, if the channel was not monitored.',
    ).exactOptional(),
    gaps: z
      .array(gapSchema)
      .meta({ description: 'The first periods in which the channel was not monitored.' }),
    gapCount: count(
      'Number of all periods in which the channel was not monitored. Absent, instead of 0, if the channel was never monitored.',
    ).exactOptional(),
  })
  .meta({ id: 'ChannelCoverage', description: 'How completely one channel of the session was monitored.' });

const recordingSchema = z.object({
  durationSeconds: seconds('Length of the take, in seconds.'),
  realTime: knownWords(REAL_TIME_STATUSES).meta({
    description:
      '`observed`: the agent saw the take grow in real time from a hardware input. Otherwise `unknown`, which does not imply any wrongdoing.',
  }),
  input: knownWords(TAKE_INPUTS).meta({
    description: 'Kind of input that the take was recorded from, as far as the agent observed it.',
  }),
  growthSteps: count('How often the agent observed that the take had grown.'),
  placementCount: count(
    'Number of clips in the arrangement that use the take. Absent, instead of 0, if clips were not monitored.',
  ).exactOptional(),
});

const counters = Object.fromEntries(
  (Object.keys(COUNTERS) as CounterName[]).map((name) => [
    name,
    counterSchema.meta({ description: `Counter: ${COUNTER_WORDS[name]}.` }),
  ]),
) as Readonly<Record<CounterName, typeof counterSchema>>;
const coverage = Object.fromEntries(
  CHANNELS.map((channel) => [
    channel,
    coverageSchema.meta({ description: `Coverage of the channel: ${CHANNEL_WORDS[channel]}.` }),
  ]),
) as Readonly<Record<Channel, typeof coverageSchema>>;

/** The session evidence (rule 9.22). */
const sessionEvidenceSchema = z
  .object({
    traceSha256: sha256Schema.meta({
      description:
        'SHA-256 of the whole capture trace. The signed statement of the proof contains the same digest.',
    }),
    traceBytes: count('Size of the trace, in bytes.'),
    traceVersion: count('Format version of the trace.'),
    simulated: z
      .boolean()
      .meta({ description: 'True for a generated test trace. It is not evidence of a real session.' }),
    adapter: z
      .object({
        name: slug('Name of the agent, such as `ardour`.'),
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
        'Takes, longest first. A long list is shortened. The counter `takesRecorded` is the number of all takes, except takes from an input inside the workstation.',
    }),
    activity: z
      .object({
        bucketSeconds: seconds('Length of each time interval, in seconds.'),
        buckets: z
          .array(
            z.object({
              atSeconds: seconds('Start of the interval, in seconds from the start of the session.'),
              edits: count(
                'Number of edits observed in the interval. Absent, instead of 0, if a channel of edits was not monitored.',
              ).exactOptional(),
              recordings: count(
                'Number of recordings observed in the interval. Absent, instead of 0, if audio or MIDI recording was not monitored.',
              ).exactOptional(),
              imports: count(
                'Number of imports observed in the interval. Absent, instead of 0, if imports were not monitored.',
              ).exactOptional(),
            }),
          )
          .meta({ description: 'Time intervals with observed activity, in order of time.' }),
      })
      .meta({ description: 'Activity over time, in intervals of equal length.' }),
    export: z
      .object({
        fileSha256: sha256Schema.meta({ description: 'SHA-256 of the exported file.' }),
        issuedAudio: knownWords(EXPORT_MATCHES).meta({
          description: 'Whether the exported file is the issued audio.',
        }),
        durationSeconds: seconds('Length of the export, in seconds.').exactOptional(),
        rerender: knownWords(EVENTS['export.finished'].fields.rerender).meta({
          description: 'Whether the session was rendered again, and whether the result matched the export.',
        }),
      })
      .meta({
        description:
          'The export that is the issued audio, or else the last export of the session. Absent if no export was observed.',
      })
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
  detector: slug('Name of the detector that the issuing side used.'),
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
  generator: slug('Name of the generator that the file is attributed to.').exactOptional(),
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
        approximateSeconds: seconds(
          'Time of the arrangement that these clips cover, in seconds. Time that several clips cover is added only once.',
        ),
        spans: z
          .array(
            z.object({
              startSeconds: seconds('Start, in seconds from the start of the arrangement.'),
              endSeconds: seconds('End, in seconds from the start of the arrangement.'),
            }),
          )
          .meta({
            description: 'Time spans of the arrangement that these clips cover. A long list is shortened.',
          }),
      })
      .meta({
        description:
          'Where the arrangement uses the source or material derived from it. This does not show what is audible in the mix. Absent if clips were not monitored.',
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
        'Version of the consent text that the creator agreed to. If the consent is revoked, the report omits the source detail.',
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
      .meta({
        description: 'Tracks that were observed, including removed tracks. A long list is shortened.',
      }),
    trackCount: count(
      'Number of all tracks that were observed, including removed tracks and tracks that the list omits. Absent, instead of 0, if tracks were not monitored.',
    ).exactOptional(),
    placements: z
      .array(
        z.object({
          placementId: identifierSchema.meta({ description: 'Id of the clip within this report.' }),
          trackId: identifierSchema.meta({ description: 'Id of the track that holds the clip.' }),
          sourceId: identifierSchema
            .meta({
              description: 'Id of the imported source that the clip plays. Absent if the clip plays none.',
            })
            .exactOptional(),
          origin: knownWords(PLACEMENT_ORIGINS).meta({
            description: 'Origin of the material, as far as it was observed.',
          }),
          beats: range(
            'Range of the clip, in beats. Absent if only its range in seconds is known.',
          ).exactOptional(),
          approximateSeconds: range(
            'Range of the clip, in seconds, possibly estimated with the last observed tempo. Absent if only its range in beats is known.',
          ).exactOptional(),
          state: knownWords(PLACEMENT_STATES).meta({
            description: 'Last observed state: still present, or removed.',
          }),
          edits: z
            .int()
            .min(0)
            .max(1000)
            .meta({ description: 'Number of edits of the clip. More than 1000 edits are reported as 1000.' }),
        }),
      )
      .meta({
        description:
          'Clips that were observed in the arrangement, including removed clips. A long list is shortened.',
      }),
    placementCount: count(
      'Number of all clips that were observed, including removed clips and clips that the list omits. Absent, instead of 0, if clips were not monitored.',
    ).exactOptional(),
  })
  .meta({
    id: 'SourceDetail',
    description:
      "Structure of the arrangement. Only approved partners get it, and only with the creator's consent. It says nothing about the final mix.",
  });
