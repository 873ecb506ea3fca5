/** Stores that other readers refuse are never `verified`, and only failing bytes, references or signatures are `tampered`. */
import t from 'tap';
import { judge as judgeFile } from '../../src/core/domain/verdict.js';
import { readFile } from '../fixtures/credentialed-file.js';
import {
  type HostileFile,
  hostileFlips,
  hostileKinds,
  hostileMutations,
  seededPicker,
} from '../fixtures/hostile-stores.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { sampled, sized } from '../fixtures/sampling.js';
import { testSigning } from '../fixtures/signing.js';

startJudge();
const { trust } = testSigning();
const KINDS = hostileKinds();

/** Returns a reading in a few words: integrity, binding and reasons of a foreign store, else `altered` or `other`. */
function outcome(file: Buffer): string {
  const { reading, bound } = readFile(file, trust);
  if (reading?.kind !== 'foreign') return reading?.kind === 'altered' ? `altered ${reading.reason}` : 'other';
  const { integrity, reasons } = reading.report;
  return [integrity, ...(bound || integrity !== 'verified' ? [] : ['unbound']), ...reasons].join(' ');
}

t.test('a store that c2pa-rs refuses is never verified', async (t) => {
  const isTried = sampled(5);
  const kinds = [...KINDS].flatMap(([name, make]) => (isTried() ? [{ name, file: make() }] : []));
  const files: readonly HostileFile[] = [
    ...kinds,
    ...hostileMutations(sized(600, 120), seededPicker(71)),
    ...hostileFlips(sized(300, 60), seededPicker(72)),
  ];
  const counts = new Map<string, number>();
  for (const { name, file } of files) {
    const [integrity = ''] = outcome(file).split(' ');
    counts.set(integrity, (counts.get(integrity) ?? 0) + 1);
    if (integrity !== 'verified') continue;
    const { state, codes, text } = await judge(file);
    if (state !== 'Valid') t.fail(`${name}: ${state} ${codes.join(', ')} ${codes.length === 0 ? text : ''}`);
  }
  t.comment(Object.fromEntries(counts));
  for (const integrity of ['verified', 'not_checked', 'failed', 'altered'])
    t.ok((counts.get(integrity) ?? 0) > 10, `${integrity}: ${counts.get(integrity)}`);
});

const EXPECTED: Readonly<Record<string, string>> = {
  control: 'verified',
  'free first in the manifest': 'not_checked boxes_unknown',
  'json after the manifest': 'not_checked boxes_unknown',
  'a second claim last in the manifest': 'not_checked boxes_unknown',
  'credentials last in the manifest': 'not_checked boxes_unknown',
  'the signature with a private box of free bytes': 'not_checked boxes_unknown',
  'an assertion with a private box of free bytes': 'not_checked assertions_not_checked',
  'an assertion with a salt': 'verified',
  'manifest label foo': 'failed label_malformed',
  'assertion a/b with an empty map': 'failed label_malformed assertions_not_checked',
  'assertion c2pa.metadata with an empty map': 'not_checked assertions_not_checked',
  'assertion com.example with an empty map': 'verified',
  'assertion com.example with an empty object': 'verified',
  'cloud data that names a hard binding': 'not_checked assertions_not_checked',
  'claim 2 without instanceID': 'failed claim_members',
  'claim 2: dc:title is a number': 'failed claim_members',
  'assertions beside created assertions': 'failed claim_members',
  'everything gathered': 'not_checked hard_binding_missing',
  'redacts self#JUMBF=c2pa.assertions/c2pa.actions.v2': 'altered claim_malformed',
  'redacts c2pa.assertions/c2pa.actions.v2': 'altered claim_malformed',
  'data hash without pad': 'failed hash_data_malformed',
  'data hash without hash': 'failed hash_data_malformed',
  'data hash: name is a number': 'failed hash_data_malformed',
  'data hash: url is a text': 'not_checked assertions_not_checked',
  'actions: no assertion': 'failed actions_malformed',
  'actions: created twice': 'failed actions_malformed',
  'actions: a plain placed': 'not_checked actions_not_checked',
  'signature: the chain unprotected': 'not_checked certificate_not_signed',
  'signature: of another key': 'altered signature_mismatch',
  'certificate: as it should be': 'verified',
  'certificate: expired': 'failed certificate_not_valid',
  'certificate: not valid yet': 'failed certificate_not_valid',
  'certificate: of an authority': 'failed certificate_profile',
  'certificate: no key usage': 'failed certificate_profile',
  'certificate: for servers alone': 'failed certificate_profile',
  'certificate: for documents alone': 'not_checked certificate_purpose',
  'certificate: an unknown critical extension': 'failed certificate_profile',
};

t.test('each kind has its integrity and its reasons', (t) => {
  for (const [name, expected] of Object.entries(EXPECTED)) {
    const make = KINDS.get(name);
    if (make === undefined) t.fail(`there is no kind ${name}`);
    else t.equal(outcome(make()), expected, name);
  }
  t.end();
});

t.test('a credential that contradicts the standard is unregistered, and not tampered', (t) => {
  for (const name of Object.keys(EXPECTED)) {
    const file = KINDS.get(name)!();
    const { reading } = readFile(file, trust);
    const { verdict, reasons } = judgeFile({
      measurement: {
        container: 'riff',
        bytes: file.length,
        sha256: '00'.repeat(32),
        findings: [],
        ...(reading !== undefined && 'binding' in reading && reading.binding !== undefined
          ? {
              bindingSha256: reading.binding.sha256,
              credential: {
                offset: reading.binding.exclusion.start,
                length: reading.binding.exclusion.length,
              },
            }
          : { credential: { offset: 644, length: 8 } }),
      } as never,
      embedded: reading!,
    });
    if (EXPECTED[name]!.startsWith('altered')) t.equal(verdict, 'tampered', name);
    else t.strictSame([verdict, reasons[0]], ['unregistered', 'signer_unknown'], name);
  }
  t.end();
});
