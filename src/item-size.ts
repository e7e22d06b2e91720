// How large an item is to DynamoDB, which charges a write unit for each kilobyte begun. Pure.

import { byteLength } from './holder.ts';
import type { Item, Value } from './lease.ts';

export const WRITE_UNIT_BYTES = 1_024;

/** Names and texts in UTF-8; a number, a byte for each two significant digits and one more. */
export function itemBytes(item: Item): number {
  return Object.entries(item)
    .map(([name, value]) => byteLength(name) + valueBytes(value))
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** A map or a list has three bytes, and one for each of its entries. */
function valueBytes(value: Value): number {
  if ('S' in value) return byteLength(value.S);
  if ('N' in value) return numberBytes(value.N);
  if ('M' in value) return 3 + Object.keys(value.M).length + itemBytes(value.M);
  if ('L' in value) return 3 + value.L.reduce((sum, each) => sum + 1 + valueBytes(each), 0);
  if ('B' in value) return value.B.length;
  if ('SS' in value) return value.SS.reduce((sum, each) => sum + byteLength(each), 0);
  if ('NS' in value) return value.NS.reduce((sum, each) => sum + numberBytes(each), 0);
  if ('BS' in value) return value.BS.reduce((sum, each) => sum + each.length, 0);
  return 1;
}

function numberBytes(number: string): number {
  return Math.ceil(number.replace(/[-.]/g, '').replace(/^0+|0+$/g, '').length / 2) + 1;
}
