/** Which master has which slots, according to a node of the cluster. */
import { nameOf } from './address.js'

export interface ClusterMap {
  /** Names of masters, such as `10.0.0.1:6379`. */
  readonly masters: ReadonlySet<string>
  /** All nodes including replicas, which are used when all masters are unreachable. */
  readonly nodes: ReadonlySet<string>
  /** Ranges of slots, both ends included. */
  readonly ranges: readonly { from: number; to: number; master: string }[]
}

type WireNode = [host: string | null, port: number, ...rest: unknown[]]
type WireRange = [from: number, to: number, master: WireNode, ...replicas: WireNode[]]

/** `repliedBy`: the host that replied. A node that does not know its own name leaves it out. */
export function readClusterSlots(reply: unknown, repliedBy: string): ClusterMap {
  const nodes = new Set<string>()
  const masters = new Set<string>()
  const nameOfNode = ([host, port]: WireNode) => {
    const name = nameOf({ host: host === null || host === '' ? repliedBy : host, port })
    nodes.add(name)
    return name
  }
  const ranges = (reply as WireRange[]).map(([from, to, first, ...replicas]) => {
    const master = nameOfNode(first)
    masters.add(master)
    for (const replica of replicas) nameOfNode(replica)
    return { from, to, master }
  })
  return { masters, nodes, ranges }
}

/** `MOVED 3999 10.0.0.1:6379`, or `ASK …`. A missing host means the one that replied. */
export function readRedirect(
  message: string,
): { slot: number; node: string; asking: boolean } | undefined {
  const [, word, slot, node] = /^(MOVED|ASK) (\d+) (\S*:\d+)/.exec(message) ?? []
  return node === undefined ? undefined : { slot: Number(slot), node, asking: word === 'ASK' }
}
