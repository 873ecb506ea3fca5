import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';

/** Address of a caller whose connection is already gone. */
const UNKNOWN = 'unknown';

/** Addresses of connections and requests, as bounds for each caller count them. */
export class CallerAddresses {
  readonly #trusted = new BlockList();

  /**
   * @param trustedProxies addresses, and ranges in CIDR notation (RFC 4632), of the proxies whose
   * X-Forwarded-For is believed
   */
  constructor(trustedProxies: readonly string[] = []) {
    for (const proxy of trustedProxies) {
      const [address, prefix] = proxy.split('/') as [string, string?];
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      if (prefix === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(prefix), family);
    }
  }

  /** True for a peer that speaks for others: its bytes are not one caller's. */
  trusts(peer: string | undefined): boolean {
    const address = unmapped(peer ?? '');
    return isIP(address) !== 0 && this.#trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }

  /**
   * The group of addresses that one caller has: an IPv4 address, or the /64 of an IPv6 one, since a host has
   * all of its network (RFC 4291, 2.5.4).
   * @param peer the other end of the connection
   * @param forwardedFor X-Forwarded-For, several joined by commas. What stands left of the rightmost address
   * that is not a trusted
   *   proxy's came from the caller itself, so it is not looked at.
   */
  of(peer: string | undefined, forwardedFor?: string): string {
    if (forwardedFor === undefined || !this.trusts(peer)) return groupOf(peer ?? UNKNOWN);
    for (const entry of forwardedFor.split(',').reverse()) {
      const address = entry.trim();
      if (isIP(address) === 0) break;
      if (!this.trusts(address)) return groupOf(address);
    }
    return groupOf(peer ?? UNKNOWN);
  }
}

function groupOf(address: string): string {
  const plain = unmapped(address);
  return isIPv6(plain)
    ? `${new SocketAddress({ address: network(plain), family: 'ipv6' }).address}/64`
    : plain;
}

/**
 * An IPv4 address in an IPv6 one (RFC 4291, 2.5.5.2) counts as the IPv4 address; a zone (RFC 4007) concerns
 * this host alone.
 */
function unmapped(address: string): string {
  const [plain] = address.split('%', 1) as [string];
  if (!isIPv6(plain)) return plain;
  // The canonical spelling, whichever spelling was given.
  const canonical = new SocketAddress({ address: plain, family: 'ipv6' }).address;
  const mapped = canonical.startsWith('::ffff:') ? canonical.slice('::ffff:'.length) : '';
  return isIPv4(mapped) ? mapped : canonical;
}

/** The address with its last 64 bits 0. */
function network(canonical: string): string {
  // The last two words may be spelled as IPv4; both lie in the half that goes.
  const [head, tail] = canonical.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0').split('::') as [string, string?];
  const words = (part: string) => (part === '' ? [] : part.split(':'));
  const before = words(head);
  const after = words(tail ?? '');
  const gap = tail === undefined ? 0 : 8 - before.length - after.length;
  return `${[...before, ...Array<string>(gap).fill('0'), ...after].slice(0, 4).join(':')}::`;
}
