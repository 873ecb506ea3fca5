import { type CborValue, encodeCbor } from '../codec/cbor.js';
import type { HardBinding, SignatureAlgorithm } from '../domain/parsed-credential.js';
import {
  ASSERTIONS_LABEL,
  assertion,
  type History,
  hashedUri,
  historyAssertions,
  members,
} from './actions.js';
import { protectedHeader, toBeSigned, writeSign1 } from './cose.js';
import { BOX_TYPES, writeContentBox, writeSuperbox } from './jumbf.js';
import { isProduction, PRODUCTION_LABEL, SEAL_LABEL, type Statement } from './statement.js';

/**
 * The content of a store of ours, which has one canonical encoding. A store is a function of its content and
 * the signature: every byte is signed, hashed or constant. The reader reads the content, writes it again and
 * compares.
 */
export interface StoreContent {
  /** The name of the manifest: a UUID of version 4 in lower case. */
  readonly manifestUuid: string;
  readonly generator: Generator;
  readonly statement: Statement;
  readonly history: History;
  readonly binding: HardBinding;
  readonly algorithm: SignatureAlgorithm;
  /** The certificate of the leaf in DER. */
  readonly certificate: Uint8Array;
}

/** The software that made the claim (C2PA 2.2 section 10.2.3). */
export interface Generator {
  readonly name: string;
  readonly version: string;
}

export interface StoreForm {
  /** The bytes that the signer signs. */
  readonly toBeSigned: Uint8Array;
  /**
   * Writes the store.
   * @param signature 64 bytes
   */
  write(signature: Uint8Array): Uint8Array;
}

export const STORE_LABEL = 'c2pa';
export const CLAIM_LABEL = 'c2pa.claim.v2';
export const SIGNATURE_LABEL = 'c2pa.signature';
export const HASH_DATA_LABEL = 'c2pa.hash.data';
/** The version of C2PA that stores state. Earlier stores of ours state none. */
const SPEC_VERSION = '2.4.0';
const MANIFEST_PREFIX = 'urn:c2pa:';
const MANIFEST_LABEL = /^urn:c2pa:([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/;

export function manifestUuidIn(label: string): string | undefined {
  return MANIFEST_LABEL.exec(label)?.[1];
}

/** Returns the label of the assertion that contains a statement. */
export function statementLabel(statement: Statement): string {
  return isProduction(statement) ? PRODUCTION_LABEL : SEAL_LABEL;
}

export function storeForm(content: StoreContent): StoreForm {
  const manifestLabel = MANIFEST_PREFIX + content.manifestUuid;
  const assertions = [
    ...historyAssertions(content.history),
    assertion(statementLabel(content.statement), members(content.statement)),
    assertion(HASH_DATA_LABEL, hashData(content.binding)),
  ];
  const claim = encodeCbor(
    members({
      instanceID: `xmp:iid:${content.manifestUuid}`,
      claim_generator_info: members({
        ...content.generator,
        ...(content.history.form === 'composite' ? {} : { specVersion: SPEC_VERSION }),
      }),
      // Absolute, so that the signature also binds the label of the manifest.
      signature: `self#jumbf=/${STORE_LABEL}/${manifestLabel}/${SIGNATURE_LABEL}`,
      created_assertions: assertions.map(hashedUri),
      alg: 'sha256',
    }),
  );
  const header = protectedHeader(content.algorithm, content.certificate);
  return {
    toBeSigned: toBeSigned(header, claim),
    write: (signature) =>
      writeSuperbox(BOX_TYPES.store, STORE_LABEL, [
        writeSuperbox(BOX_TYPES.manifest, manifestLabel, [
          writeSuperbox(
            BOX_TYPES.assertionStore,
            ASSERTIONS_LABEL,
            assertions.map(({ box }) => box),
          ),
          writeSuperbox(BOX_TYPES.claim, CLAIM_LABEL, [writeContentBox('cbor', claim)]),
          writeSuperbox(BOX_TYPES.signature, SIGNATURE_LABEL, [
            writeContentBox('cbor', writeSign1(header, signature)),
          ]),
        ]),
      ]),
  };
}

/** Returns the assertion c2pa.hash.data (C2PA 2.2 section 18.5). `pad` is required and stays empty. */
function hashData({ exclusion, sha256 }: HardBinding): CborValue {
  return members({
    exclusions: [members(exclusion)],
    alg: 'sha256',
    hash: Buffer.from(sha256, 'hex'),
    pad: new Uint8Array(0),
  });
}
