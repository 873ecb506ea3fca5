import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';

/** The address of a caller whose connection has already closed. */
const UNKNOWN = 'unknown';

/** Groups callers by address, so that limits per caller can be counted. */
export class CallerAddresses {
  readonly #trusted = new BlockList();

  /**
   * @param trustedProxies the addresses and CIDR ranges (RFC 4632) of the proxies whose X-Forwarded-For is
   * trusted
   */
  constructor(trustedProxies: readonly string[] = []) {
    for (const proxy of trustedProxies) {
      const [address, prefix] = proxy.split('/') as [string, string?];
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      if (prefix === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(prefix), family);
    }
  }

  /**
   * Returns true for a trusted proxy. A trusted proxy sends the bytes of many callers, so no limit per caller
   * applies to its connection.
   */
  trusts(peer: string | undefined): boolean {
    const address = unmapped(peer ?? '');
    return isIP(address) !== 0 && this.#trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }

  /**
   * Returns the address group of one caller. The group is an IPv4 address, or the /64 of an IPv6 address,
   * because one host controls a whole /64 (RFC 4291, 2.5.4).
   * @param peer the other end of the connection
   * @param forwardedFor X-Forwarded-For, several values joined by commas. Entries to the left of the
   * rightmost address that is not a trusted proxy were sent by the caller, so they are ignored.
   */
  of(peer: string | undefined, forwardedFor?: string): string {
    if (forwardedFor === undefined || !this.trusts(peer)) return groupOf(peer ?? UNKNOWN);
    for (const entry of forwardedFor.split(',').reverse()) {
      const address = withoutPort(entry.trim());
      if (isIP(address) === 0) break;
      if (!this.trusts(address)) return groupOf(address);
    }
    return groupOf(peer ?? UNKNOWN);
  }
}

/** Removes the port, which some proxies append to an address. An IPv6 address with a port is in brackets. */
function withoutPort(entry: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? [];
  return bracketed ?? plain ?? entry;
}

function groupOf(address: string): string {
  const plain = unmapped(address);
  return isIPv6(plain)
    ? `${new SocketAddress({ address: network(plain), family: 'ipv6' }).address}/64`
    : plain;
}

/**
 * Converts an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) to its IPv4 address. Removes the zone (RFC 4007),
 * which has a meaning only on this host.
 */
function unmapped(address: string): string {
  const [plain] = address.split('%', 1) as [string];
  if (!isIPv6(plain)) return plain;
  // Different spellings of one address must give one result.
  const canonical = new SocketAddress({ address: plain, family: 'ipv6' }).address;
  const mapped = canonical.startsWith('::ffff:') ? canonical.slice('::ffff:'.length) : '';
  return isIPv4(mapped) ? mapped : canonical;
}

/** Returns the address with its last 64 bits set to 0. */
function network(canonical: string): string {
  // The last two words may be written as IPv4. These words are in the half that is dropped.
  const [head, tail] = canonical.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0').split('::') as [string, string?];
  const words = (part: string) => (part === '' ? [] : part.split(':'));
  const before = words(head);
  const after = words(tail ?? '');
  const gap = tail === undefined ? 0 : 8 - before.length - after.length;
  return `${[...before, ...Array<string>(gap).fill('0'), ...after].slice(0, 4).join(':')}::`;
}
