/** Questions to the thread that reads a project, one at a time. */
export type ToProject =
  | { readonly kind: 'documents' }
  /** Blocks of samples, in order. A negative number is that many samples of silence. */
  | { readonly kind: 'samples'; readonly blocks: readonly number[] };

export interface ProjectDocument {
  readonly dict: Uint8Array;
  readonly doc: Uint8Array;
}

export type FromProject =
  | {
      readonly kind: 'documents';
      /** The document that was saved last. Null in a project that was never saved. */
      readonly saved: ProjectDocument | null;
      /** The document with unsaved edits. Null while there are none. */
      readonly unsaved: ProjectDocument | null;
    }
  /** The samples as float32. */
  | { readonly kind: 'samples'; readonly samples: Uint8Array }
  /** The project cannot be understood, now or later. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The database could not be read. It may be readable a moment later. */
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'missing_package' };
