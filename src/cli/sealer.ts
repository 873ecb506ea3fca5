/** A file before it is sealed, read twice. */
export interface PlainAudio {
  readonly bytes: number;
  read(): AsyncIterable<Uint8Array>;
}

/** Statement of a seal. */
export interface SealFacts {
  /** Unix seconds by this device's clock. */
  readonly sealedAt: number;
  /** Lower-case hex SHA-256 of the device's certificate. */
  readonly kid: string;
  readonly device: string;
}

/**
 * An artist's device: seals audio offline with a key it keeps. Sealing is the one thing that the command
 * line does itself instead of asking the service.
 */
export interface Sealer {
  /** Seals a WAV/BWF in itself. `file` yields the sealed file, once. */
  embed(audio: PlainAudio): Promise<SealFacts & { readonly file: AsyncIterable<Uint8Array> }>;
  /** Seals any file as the audio of a pair. */
  sidecar(audio: PlainAudio): Promise<SealFacts & { readonly sidecar: Uint8Array }>;
  close(): Promise<void>;
}
