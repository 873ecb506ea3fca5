import { DomainError } from '../../domain/errors.js';

/** @param downloads addresses by `product/platform` */
export function findDownload(
  downloads: ReadonlyMap<string, string>,
  { product, platform }: { readonly product: string; readonly platform: string },
): string {
  const address = downloads.get(`${product}/${platform}`);
  if (address === undefined) throw new DomainError('not_found', 'There is no such download.');
  return address;
}
