/**
 * Undo history as Ardour saves it: a transaction for each undoable edit, with its time and what it changed. It is
 * the list of what can be undone, no log: an undone transaction leaves it, and the oldest fall out at its depth.
 */
import type { TempoMap as Tempo } from '../../witness/domain/tempo-map.js';
import {
  type Extent,
  type MarkerState,
  readExtent,
  readMarkers,
  readPoints,
  readTempoMap,
  type TempoMap,
  tempoOf,
} from './session-file.js';
import { child, children, type XmlElement, XmlError } from './xml.js';

export type Change =
  | {
      readonly kind: 'playlist';
      readonly playlist: string;
      readonly added: readonly string[];
      readonly removed: readonly string[];
    }
  /** The extent of a region. A change of place is a part of it. */
  | { readonly kind: 'extent'; readonly region: string; readonly from: Extent; readonly to: Extent }
  | {
      readonly kind: 'property';
      readonly region: string;
      readonly property: string;
      readonly from: string;
      readonly to: string;
    }
  | {
      readonly kind: 'notes';
      readonly source: string;
      readonly added: number;
      readonly removed: number;
      readonly changed: number;
    }
  | {
      readonly kind: 'automation';
      readonly list: string;
      readonly before: ReadonlyMap<string, string>;
      readonly after: ReadonlyMap<string, string>;
    }
  | {
      readonly kind: 'markers';
      readonly before: ReadonlyMap<string, MarkerState>;
      readonly after: ReadonlyMap<string, MarkerState>;
    }
  | { readonly kind: 'tempo'; readonly after: TempoMap };

export interface Transaction {
  /** The time as Ardour wrote it, which identifies the transaction. */
  readonly key: string;
  /** The time in milliseconds of the wall clock. */
  readonly wall: number;
  readonly changes: readonly Change[];
}

/** The number of transactions in the list at Ardour's default depth. */
export const DEFAULT_DEPTH = 20;

/**
 * Returns the transactions, oldest first.
 * @param map tempo of the session, for places that are tied to the other of time and beats
 */
export function readHistory(root: XmlElement, map: TempoMap): readonly Transaction[] {
  const tempo = tempoOf(map);
  if (root.name !== 'UndoHistory') throw new XmlError('the file is not an undo history', 0);
  return children(root, 'UndoTransaction').map((transaction) => {
    const seconds = transaction.attributes.get('tv-sec') ?? '';
    const micros = transaction.attributes.get('tv-usec') ?? '';
    if (!/^[0-9]{1,11}$/.test(seconds) || !/^[0-9]{1,6}$/.test(micros))
      throw new XmlError('a transaction has no time', 0);
    return {
      key: `${seconds}.${micros.padStart(6, '0')}`,
      wall: Number(seconds) * 1000 + Number(micros) / 1000,
      changes: transaction.children.flatMap((command) => readChanges(command, tempo)),
    };
  });
}

function readChanges(command: XmlElement, tempo: Tempo): readonly Change[] {
  const type = command.attributes.get('type-name') ?? '';
  const object = command.attributes.get('obj-id') ?? '';
  switch (command.name) {
    case 'StatefulDiffCommand':
      if (type.endsWith('Playlist')) return readPlaylist(command, object);
      return type.endsWith('Region') ? readRegionChanges(command, object, tempo) : [];
    case 'NoteDiffCommand':
      return [
        {
          kind: 'notes',
          source: command.attributes.get('midi-source') ?? '',
          added: child(command, 'AddedNotes')?.children.length ?? 0,
          removed: child(command, 'RemovedNotes')?.children.length ?? 0,
          changed: child(command, 'ChangedNotes')?.children.length ?? 0,
        },
      ];
    case 'MementoCommand':
      return readMemento(command, type, object);
    case 'TempoCommand': {
      const after = child(child(command, 'after'), 'TempoMap');
      return after === undefined ? [] : [{ kind: 'tempo', after: readTempoMap(after) }];
    }
    default:
      return [];
  }
}

function readPlaylist(command: XmlElement, playlist: string): readonly Change[] {
  const regions = child(child(command, 'Changes'), 'Regions');
  const ids = (name: string) => children(regions, name).map(({ attributes }) => attributes.get('id') ?? '');
  return [{ kind: 'playlist', playlist, added: ids('Add'), removed: ids('Remove') }];
}

function readRegionChanges(command: XmlElement, region: string, tempo: Tempo): readonly Change[] {
  const base = command.attributes.get('type-name')?.endsWith('MidiRegion') === true ? 'beats' : 'seconds';
  return (child(command, 'Changes')?.children ?? []).flatMap(({ name, attributes }): readonly Change[] => {
    const from = attributes.get('from') ?? '';
    const to = attributes.get('to') ?? '';
    if (name !== 'length') return [{ kind: 'property', region, property: name, from, to }];
    const [before, after] = [readExtent(from, base, tempo), readExtent(to, base, tempo)];
    return before === undefined || after === undefined
      ? []
      : [{ kind: 'extent', region, from: before, to: after }];
  });
}

/** Returns the changes of a memento command, which has the whole object as it was before and as it was after. */
function readMemento(command: XmlElement, type: string, object: string): readonly Change[] {
  const pair = (name: string): readonly XmlElement[] | undefined => {
    const sides = children(command, name);
    return sides.length === 2 ? sides : undefined;
  };
  if (type.endsWith('AutomationList')) {
    const sides = pair('AutomationList')?.map(readPoints);
    if (sides?.[0] !== undefined && sides[1] !== undefined)
      return [{ kind: 'automation', list: object, before: sides[0], after: sides[1] }];
  }
  if (type.endsWith('Locations')) {
    const sides = pair('Locations')?.map(readMarkers);
    if (sides?.[0] !== undefined && sides[1] !== undefined)
      return [{ kind: 'markers', before: sides[0], after: sides[1] }];
  }
  return [];
}
