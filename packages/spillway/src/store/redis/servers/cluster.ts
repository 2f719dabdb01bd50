/**
 * A cluster: a connection to every master, and a map of which of them has which slots. The map is read
 * again when a node points elsewhere, while a node that is needed cannot be reached, and now and then.
 * Nothing is sent twice but what a node has said it did not run.
 */
import type { Timer } from '../../../core/clock.js'
import { refuse } from '../../../core/errors.js'
import type { Connection, Lost } from '../drivers/driver.js'
import { kindOf, OFFLINE } from '../failure-kind.js'
import type { RedisConnection } from '../redis-connection.js'
import type { Via } from '../runner.js'
import { checkAccess, deafness } from '../setup/access.js'
import { RedisSetupError } from '../setup/setup-error.js'
import { openSubscription, type Subscribe } from '../subscription.js'
import { type Address, addressNamed, nameOf } from './address.js'
import { type ClusterMap, readClusterSlots, readRedirect } from './cluster-map.js'
import type { Dialler } from './dial.js'
import { createDoubt } from './doubt.js'
import { Redial } from './redial.js'
import { SLOTS, slotOf } from './slot.js'
import { within } from './within.js'

/** How often the map is read: while all is well, while something is missing, and at most. */
const CALM_MS = 30_000
const WORRIED_MS = 250
const SOONEST_MS = 50
/** For so long we believe a node that points at another, whatever others say: word spreads slowly. */
const WORD_MS = 5_000
/** A node that does not tell what it knows within this is not waited for. */
const ANSWER_MS = 1_000

interface Node {
  readonly name: string
  readonly redial: Redial<Connection>
  readonly doubt: () => void
  /** The connection on which we have seen that scripts may do all they have to. */
  checked: Connection | undefined
  /** Until then we keep it, whether the map knows it or not. */
  keepUntilMs: number
}

export function connectCluster(seeds: readonly Address[], dialler: Dialler): RedisConnection {
  return new Cluster(seeds, dialler)
}

class Cluster implements RedisConnection {
  readonly kindOf = kindOf
  readonly slotOf = slotOf
  readonly #dialler: Dialler
  readonly #seeds: readonly string[]
  readonly #nodes = new Map<string, Node>()
  readonly #owners: (Node | undefined)[] = new Array(SLOTS).fill(undefined)
  #map: ClusterMap | undefined
  /** The node that was last pointed at: it knows best. */
  #pointedAt: string | undefined
  /** Every master has been there; from then on it is ready as long as any of them is. */
  #complete = false
  #setup: RedisSetupError | undefined
  #reading = false
  #timer: Timer | undefined
  #dueMs = 0
  #closed = false

  constructor(seeds: readonly Address[], dialler: Dialler) {
    this.#dialler = dialler
    this.#seeds = seeds.map(nameOf)
    for (const seed of this.#seeds) this.#nodeAt(seed)
    this.#readSoon(0)
  }

  get ready(): boolean {
    return this.#complete && this.#setup === undefined
  }

  get problem(): unknown {
    if (this.#setup !== undefined) return this.#setup
    for (const { redial } of this.#nodes.values()) {
      if (redial.problem !== undefined) return redial.problem
    }
    return undefined
  }

  send(args: readonly string[], key: string | undefined, via?: Via): Promise<unknown> {
    const node = via === undefined ? this.#owners[slotOf(key ?? '')] : this.#nodes.get(via.node)
    const connection = node?.redial.client
    if (connection?.ready !== true) {
      this.#readSoon(WORRIED_MS)
      return refuse(new Error(OFFLINE))
    }
    // Nothing can come between the two: what is sent in one turn leaves in order.
    if (via?.asking === true) connection.send(['ASKING']).catch(() => {})
    return connection.send(args)
  }

  redirect(message: string): Via | undefined {
    const told = readRedirect(message)
    if (told === undefined || this.#closed) return undefined
    const name = told.node.startsWith(':') ? this.#sameHost(told.node) : told.node
    const node = this.#nodeAt(name)
    node.keepUntilMs = this.#dialler.clock.now() + WORD_MS
    if (!told.asking) {
      this.#owners[told.slot] = node
      this.#pointedAt = name
      this.#readSoon(SOONEST_MS)
    }
    return { node: name, asking: told.asking }
  }

  doubt(key: string | undefined): void {
    this.#owners[slotOf(key ?? '')]?.doubt()
    this.#readSoon(WORRIED_MS)
  }

  /** What is published anywhere in a cluster is heard on every node. */
  readonly subscribe: Subscribe = (channel, hearer) => {
    const { clock, random, warn } = this.#dialler
    const dial = (lost: Lost) => {
      const names = [...(this.#map?.masters ?? this.#seeds)]
      const name = names[Math.floor(random() * names.length)] as string
      return this.#dialler.dial(addressNamed(name), { expected: 'cluster' }, lost)
    }
    return openSubscription({ dial, clock, random, denied: deafness(warn) }, channel, hearer)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    for (const { redial } of this.#nodes.values()) redial.close()
    this.#nodes.clear()
    this.#owners.fill(undefined)
    this.#complete = false
  }

  #nodeAt(name: string): Node {
    const known = this.#nodes.get(name)
    if (known !== undefined) return known
    const { clock, random } = this.#dialler
    const address = addressNamed(name)
    const dial = async (lost: Lost) => {
      const line = await this.#dialler.dial(address, { expected: 'cluster' }, (problem) => {
        lost(problem)
        this.#readSoon(SOONEST_MS)
      })
      const open = () => line.open().then(() => this.#readSoon(0))
      return { client: line.client, open, drop: line.drop }
    }
    const redial = new Redial<Connection>({ dial, clock, random })
    const doubt = createDoubt(redial, clock)
    const node = { name, redial, doubt, checked: undefined, keepUntilMs: 0 }
    this.#nodes.set(name, node)
    return node
  }

  #sameHost(port: string): string {
    const [name = ''] = this.#nodes.keys()
    return `${addressNamed(name).host}${port}`
  }

  #readSoon(withinMs: number): void {
    const { clock } = this.#dialler
    const dueMs = clock.now() + withinMs
    if (this.#closed || (this.#timer !== undefined && this.#dueMs <= dueMs)) return
    this.#timer?.cancel()
    this.#dueMs = dueMs
    this.#timer = clock.schedule(withinMs, () => {
      this.#timer = undefined
      void this.#read()
    })
    this.#timer.unref()
  }

  async #read(): Promise<void> {
    if (this.#reading) return
    this.#reading = true
    try {
      const connected = this.#connected()
      for (const node of connected) {
        const map = await this.#ask(node)
        if (map === undefined) continue
        this.#apply(map)
        break
      }
      if (connected.length === 0) this.#lookAround()
      await this.#check()
    } finally {
      this.#reading = false
      const masters = [...(this.#map?.masters ?? [])].map((name) => this.#nodes.get(name))
      const present = masters.filter((node) => node?.redial.client?.ready)
      const well = masters.length > 0 && present.length === masters.length
      this.#complete = well || (this.#complete && present.length > 0)
      this.#readSoon(well && this.#setup === undefined ? CALM_MS : WORRIED_MS)
    }
  }

  /** In the order in which they are asked. */
  #connected(): Node[] {
    const nodes = [...this.#nodes.values()].filter(({ redial }) => redial.client?.ready)
    const from = Math.floor(this.#dialler.random() * nodes.length)
    const pointedAt = nodes.filter(({ name }) => name === this.#pointedAt)
    return [...pointedAt, ...nodes.slice(from), ...nodes.slice(0, from)]
  }

  async #ask({ name, redial }: Node): Promise<ClusterMap | undefined> {
    const { client } = redial
    if (client === undefined) return undefined
    try {
      const { clock } = this.#dialler
      const reply = await within(ANSWER_MS, clock, client.send(['CLUSTER', 'SLOTS']))
      const map = readClusterSlots(reply, addressNamed(name).host)
      // A node that has just been started, or was thrown out, knows nothing.
      return map.masters.size > 0 ? map : undefined
    } catch (error) {
      this.#note(error)
      return undefined
    }
  }

  #note(error: unknown): void {
    if (!(error instanceof Error) || !error.message.startsWith('NOPERM')) return
    this.#setup = new RedisSetupError(
      `the cluster: the user Spillway logs in as may not run CLUSTER SLOTS. Grant it: ACL SETUSER … +cluster|slots`,
      error,
    )
    this.#dialler.warn(this.#setup.message)
  }

  #apply(map: ClusterMap): void {
    if (this.#closed) return
    this.#map = map
    this.#owners.fill(undefined)
    for (const { from, to, master } of map.ranges) {
      this.#owners.fill(this.#nodeAt(master), from, to + 1)
    }
    const now = this.#dialler.clock.now()
    for (const [name, { redial, keepUntilMs }] of this.#nodes) {
      if (map.masters.has(name) || now < keepUntilMs) continue
      redial.close()
      this.#nodes.delete(name)
    }
  }

  /** Nobody we know is there: maybe others are. */
  #lookAround(): void {
    if (this.#closed) return
    for (const name of this.#seeds) this.#nodeAt(name)
    for (const name of this.#map?.nodes ?? []) this.#nodeAt(name)
  }

  /** Each node has users of its own. */
  async #check(): Promise<void> {
    if (this.#map === undefined) return
    const problems = await Promise.all(
      [...this.#nodes.values()].map((node) => this.#checkNode(node)),
    )
    this.#setup = problems.find((problem) => problem !== undefined)
    if (this.#setup !== undefined) this.#dialler.warn(this.#setup.message)
  }

  async #checkNode(node: Node): Promise<RedisSetupError | undefined> {
    const { access, clock, warn } = this.#dialler
    const connection = node.redial.client
    const key = this.#keyOf(node)
    if (connection === undefined || connection === node.checked || key === undefined) return
    try {
      await within(ANSWER_MS, clock, checkAccess(connection.send, access, key, node.name, warn))
      node.checked = connection
    } catch (error) {
      if (error instanceof RedisSetupError) return error
    }
    return undefined
  }

  /** A key that this node has, to try things on. */
  #keyOf(node: Node): string | undefined {
    const slots = this.#owners.filter((owner) => owner === node).length
    // By chance one in so many is, so this finds one, or next to no slot is its own.
    for (let tag = 0; tag < (slots === 0 ? 0 : SLOTS); tag++) {
      const key = this.#dialler.access.check(`check${tag}`)
      if (this.#owners[slotOf(key)] === node) return key
    }
    return undefined
  }
}
