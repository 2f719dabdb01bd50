/** The cluster nodes that we are connected to, and the slots of each. */

import type { Connection, Lost } from '../drivers/driver.js'
import { type Access, checkAccess } from '../setup/access.js'
import { RedisSetupError } from '../setup/setup-error.js'
import { addressNamed } from './address.js'
import type { ClusterMap } from './cluster-map.js'
import type { Dialler } from './dial.js'
import { Redial } from './redial.js'
import { createSilentConnectionCheck } from './silent-connection.js'
import { SLOTS, slotOf } from './slot.js'
import { within } from './within.js'

export interface ClusterNode {
  readonly name: string
  readonly redial: Redial<Connection>
  readonly checkAlive: () => void
  /** The connection whose permissions were checked. */
  checked: Connection | undefined
  /** Until then it is kept even if the map does not have it. */
  keepUntilMs: number
}

/** Longest wait for the reply of a node. */
export const ANSWER_MS = 1_000
/** How long a redirection outweighs the maps of other nodes, which learn of changes slowly. */
const REDIRECT_MS = 5_000

export class ClusterNodes {
  readonly #dialler: Dialler
  /** Called when a connection is up or lost. */
  readonly #changed: (how: 'up' | 'lost') => void
  readonly #nodes = new Map<string, ClusterNode>()
  readonly #owners: (ClusterNode | undefined)[] = new Array(SLOTS).fill(undefined)

  constructor(dialler: Dialler, changed: (how: 'up' | 'lost') => void) {
    this.#dialler = dialler
    this.#changed = changed
  }

  ownerOf(key: string): ClusterNode | undefined {
    return this.#owners[slotOf(key)]
  }

  get(name: string): ClusterNode | undefined {
    return this.#nodes.get(name)
  }

  get all(): ClusterNode[] {
    return [...this.#nodes.values()]
  }

  get connected(): ClusterNode[] {
    return this.all.filter(({ redial }) => redial.client?.ready)
  }

  /** Connects to it, unless we are connected already. */
  add(name: string): ClusterNode {
    const known = this.#nodes.get(name)
    if (known !== undefined) return known
    const { clock, random } = this.#dialler
    const address = addressNamed(name)
    const dial = async (lost: Lost) => {
      const dialed = await this.#dialler.dial(address, { expected: 'cluster' }, (problem) => {
        lost(problem)
        this.#changed('lost')
      })
      const open = () => dialed.open().then(() => this.#changed('up'))
      return { client: dialed.client, open, drop: dialed.drop }
    }
    const redial = new Redial<Connection>({ dial, clock, random })
    const checkAlive = createSilentConnectionCheck(redial, clock)
    const node = { name, redial, checkAlive, checked: undefined, keepUntilMs: 0 }
    this.#nodes.set(name, node)
    return node
  }

  /** Another node redirected us to it: for a slot that it now has, or for one command. */
  pointTo(name: string, slot: number | undefined): void {
    const node = this.add(name)
    node.keepUntilMs = this.#dialler.clock.now() + REDIRECT_MS
    if (slot !== undefined) this.#owners[slot] = node
  }

  /** Connects to all masters and drops all other nodes. */
  follow(map: ClusterMap): void {
    this.#owners.fill(undefined)
    for (const { from, to, master } of map.ranges) {
      this.#owners.fill(this.add(master), from, to + 1)
    }
    const now = this.#dialler.clock.now()
    for (const [name, { redial, keepUntilMs }] of this.#nodes) {
      if (map.masters.has(name) || now < keepUntilMs) continue
      redial.close()
      this.#nodes.delete(name)
    }
  }

  /** The first problem of any node, because each has its own users. */
  async check(): Promise<RedisSetupError | undefined> {
    const problems = await Promise.all(this.all.map((node) => this.#check(node)))
    return problems.find((problem) => problem !== undefined)
  }

  close(): void {
    for (const { redial } of this.#nodes.values()) redial.close()
    this.#nodes.clear()
    this.#owners.fill(undefined)
  }

  async #check(node: ClusterNode): Promise<RedisSetupError | undefined> {
    const { access, clock, warn } = this.#dialler
    const connection = node.redial.client
    if (connection === undefined || connection === node.checked) return undefined
    const key = this.#keyOf(node, access)
    if (key === undefined) return undefined
    try {
      await within(ANSWER_MS, clock, checkAccess(connection.send, access, key, node.name, warn))
      node.checked = connection
    } catch (error) {
      if (error instanceof RedisSetupError) return error
    }
    return undefined
  }

  /** A key in a slot of this node, for checks. */
  #keyOf(node: ClusterNode, access: Access): string | undefined {
    if (!this.#owners.includes(node)) return undefined
    // Slots are random, so this finds a key soon, unless the node has next to no slots.
    for (let tag = 0; tag < SLOTS; tag++) {
      const key = access.check(`check${tag}`)
      if (this.ownerOf(key) === node) return key
    }
    return undefined
  }
}
