/** A file to seal. It is read twice. */
export interface PlainAudio {
  readonly bytes: number;
  read(): AsyncIterable<Uint8Array>;
}

/** The facts that a seal states. */
export interface SealFacts {
  /** The time of the seal in unix seconds, by this device's clock. */
  readonly sealedAt: number;
  /** The SHA-256 of the device's certificate in lower-case hex. */
  readonly kid: string;
  readonly device: string;
}

/**
 * An artist's device, which seals audio offline with its own key. The command line does this work itself instead of
 * calling the service.
 */
export interface Sealer {
  /** Embeds a seal into a WAV/BWF file. `file` yields the sealed file and can be read once. */
  embed(audio: PlainAudio): Promise<SealFacts & { readonly file: AsyncIterable<Uint8Array> }>;
  /** Creates a sidecar seal for a file of any format. */
  sidecar(audio: PlainAudio): Promise<SealFacts & { readonly sidecar: Uint8Array }>;
  close(): Promise<void>;
}
