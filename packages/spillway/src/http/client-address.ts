/**
 * The address of a client. Any client can send `X-Forwarded-For`; only what our own proxies added
 * to it is reliable. So it is read from the right, past the trusted proxies, and the first other
 * address is the client's. Without trusted proxies it is the other end of the connection.
 */
import { BlockList, isIP } from 'node:net'
import type { Check } from '../core/options/checks.js'

/** The number of trusted proxies in front of the server, or their networks. */
export type TrustedProxies = number | readonly string[]

/** The address a request came from: that of its connection, or the one our proxies report. */
export type ClientAddress = (remote: string | undefined, forwardedFor: unknown) => string

const NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
  'link-local': ['169.254.0.0/16', 'fe80::/10'],
}

export const readTrustedProxies: Check<TrustedProxies> = (value, path, problems) => {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value
  if (Array.isArray(value)) {
    for (const [index, network] of value.entries()) {
      if (addTo(new BlockList(), network)) continue
      const names = Object.keys(NETWORKS).join(', ')
      const message = `must be an address, a network such as 10.0.0.0/8, or one of ${names}`
      problems.push({ path: `${path}[${index}]`, message })
    }
    return value
  }
  const hint = value === true ? '; trusting all proxies lets clients choose their address' : ''
  const message = `must be a number of proxies, or an array of their networks${hint}`
  problems.push({ path, message })
  return 0
}

export function createClientAddress(trusted: TrustedProxies, ipv6Bits: number): ClientAddress {
  const counted = (address: string) => clientNetwork(address, ipv6Bits)
  if (trusted === 0) return (remote) => counted(remote ?? '')
  if (typeof trusted === 'number') {
    return (remote, forwardedFor) => {
      const chain = addressesIn(forwardedFor)
      // Fewer entries than proxies: the request bypassed a proxy, so none of them is reliable.
      const client = chain.length >= trusted ? chain[chain.length - trusted] : undefined
      return counted(client !== undefined && isIP(plain(client)) ? client : (remote ?? ''))
    }
  }
  const isOurs = createMembershipTest(trusted)
  return (remote, forwardedFor) => {
    let client = plain(remote ?? '')
    const chain = isOurs(client) ? addressesIn(forwardedFor) : []
    for (let index = chain.length - 1; index >= 0 && isOurs(client); index--) {
      const before = plain(chain[index] as string)
      // A trusted proxy would not have written this.
      if (!isIP(before)) break
      client = before
    }
    return counted(client)
  }
}

/** There are few proxies, so they are cached; other addresses are not. */
function createMembershipTest(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const network of networks) addTo(list, network)
  const known = new Set<string>()
  return (address) => {
    if (known.has(address)) return true
    const family = isIP(address)
    if (family === 0 || !list.check(address, family === 6 ? 'ipv6' : 'ipv4')) return false
    if (known.size < 1_024) known.add(address)
    return true
  }
}

function addTo(list: BlockList, network: unknown): boolean {
  if (typeof network !== 'string') return false
  const known = Object.hasOwn(NETWORKS, network) ? NETWORKS[network] : undefined
  if (known !== undefined) return known.every((each) => addTo(list, each))
  const [address = '', bits] = network.split('/')
  const family = isIP(address)
  const most = family === 6 ? 128 : 32
  const prefix = bits === undefined ? most : Number(bits)
  if (family === 0 || !/^\d{1,3}$/.test(bits ?? `${most}`) || prefix > most) return false
  list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  return true
}

function addressesIn(header: unknown): string[] {
  const text = Array.isArray(header) ? header.join() : header
  if (typeof text !== 'string' || text === '') return []
  return text.split(',').map((each) => each.trim())
}

/** Without brackets and port. */
function plain(address: string): string {
  // Nearly all connections are IPv4.
  if (!address.includes(':')) return address
  const bare = /^\[(.*)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')
  return isIP(bare) === 6 ? (mappedIPv4(groupsOf(bare)) ?? bare) : bare
}

/**
 * The IPv4 address of a client that is connected through an IPv6 socket: `::ffff:1.2.3.4`, in any
 * notation.
 */
function mappedIPv4(groups: readonly number[]): string | undefined {
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)
  if (!isMapped) return undefined
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.')
}

/**
 * The address under which a client is counted. A household has a whole IPv6 network, so all
 * addresses of one network count as one. An IPv4 address counts alone, even if it arrives as
 * `::ffff:1.2.3.4`. `ipv6Bits`: length of the network's prefix. Default: 64.
 */
export function clientNetwork(address: string, ipv6Bits = 64): string {
  return countedAs(plain(address), ipv6Bits)
}

function countedAs(address: string, ipv6Bits: number): string {
  if (!address.includes(':') || ipv6Bits >= 128 || isIP(address) !== 6) return address
  const groups = groupsOf(address)
  const kept = groups.map((group, index) => {
    const bits = Math.min(16, Math.max(0, ipv6Bits - index * 16))
    return (group & (0xffff << (16 - bits)) & 0xffff).toString(16)
  })
  return `${kept.slice(0, Math.ceil(ipv6Bits / 16)).join(':')}::/${ipv6Bits}`
}

/** The eight numbers of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = (address.split('%')[0] as string).split('::')
  const before = numbersIn(head)
  if (tail === undefined) return before
  const after = numbersIn(tail)
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function numbersIn(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return Number.parseInt(group, 16)
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}
