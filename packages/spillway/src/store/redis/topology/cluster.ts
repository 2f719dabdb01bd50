/**
 * A cluster: a connection to every master, and a map of their slots. The map is read again after a
 * redirection, while a needed node cannot be reached, and periodically. A command is sent twice
 * only after a node has said that it did not run it.
 */

import { refuse } from '../../../core/errors.js'
import type { Timer } from '../../../core/time/clock.js'
import { kindOf, messageOf, OFFLINE } from '../connection/failure-kind.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import type { Via } from '../connection/runner.js'
import { openSubscription, type Subscribe } from '../connection/subscription.js'
import type { Connection, Lost } from '../drivers/driver.js'
import { subscribeDenied } from '../setup/access.js'
import { RedisSetupError, UNREACHABLE_CODE } from '../setup/setup-error.js'
import { type Address, addressNamed, nameOf } from './address.js'
import { type ClusterMap, readClusterSlots, readRedirect } from './cluster-map.js'
import { ANSWER_MS, type ClusterNode, ClusterNodes } from './cluster-nodes.js'
import type { Dialler } from './dial.js'
import type { Redial } from './redial.js'
import { slotOf } from './slot.js'
import { within } from './within.js'

/** How often the map is read: while every master is connected, while one is missing, and at most. */
const READ_COMPLETE_MAP_MS = 30_000
const READ_INCOMPLETE_MAP_MS = 250
const SOONEST_READ_MS = 50

export function connectCluster(seeds: readonly Address[], dialler: Dialler): RedisConnection {
  return new Cluster(seeds, dialler)
}

class Cluster implements RedisConnection {
  readonly kindOf = kindOf
  readonly slotOf = slotOf
  readonly #dialler: Dialler
  readonly #seeds: readonly string[]
  readonly #nodes: ClusterNodes
  #map: ClusterMap | undefined
  /** The node of the last redirection, which has the newest map. */
  #pointedAt: string | undefined
  /** The connections for subscriptions. */
  readonly #listening = new Map<Redial<Connection>, string>()
  /** Every master was connected once. From then on the client is ready while any of them is. */
  #complete = false
  #setup: RedisSetupError | undefined
  #reading = false
  #timer: Timer | undefined
  #dueMs = 0
  #closed = false

  constructor(seeds: readonly Address[], dialler: Dialler) {
    this.#dialler = dialler
    this.#seeds = seeds.map(nameOf)
    this.#nodes = new ClusterNodes(dialler, (how) =>
      this.#readSoon(how === 'up' ? 0 : SOONEST_READ_MS),
    )
    for (const seed of this.#seeds) this.#nodes.add(seed)
    this.#readSoon(READ_INCOMPLETE_MAP_MS)
  }

  get ready(): boolean {
    return this.#complete && this.#setup === undefined
  }

  get problem(): unknown {
    const down = this.#nodes.all.find(({ redial }) => redial.problem !== undefined)
    return this.#setup ?? down?.redial.problem
  }

  send(args: readonly string[], key: string | undefined, via?: Via): Promise<unknown> {
    const node = via === undefined ? this.#nodes.ownerOf(key ?? '') : this.#nodes.get(via.node)
    const connection = node?.redial.client
    if (connection?.ready !== true) {
      this.#readSoon(READ_INCOMPLETE_MAP_MS)
      return refuse(new Error(OFFLINE))
    }
    // Commands sent in one turn leave in order, so nothing can come between the two.
    if (via?.asking === true) connection.send(['ASKING']).catch(() => {})
    return connection.send(args)
  }

  redirect(message: string): Via | undefined {
    const redirect = readRedirect(message)
    if (redirect === undefined || this.#closed) return undefined
    const { asking, slot } = redirect
    const node = redirect.node.startsWith(':') ? this.#sameHost(redirect.node) : redirect.node
    this.#nodes.pointTo(node, asking ? undefined : slot)
    if (!asking) {
      this.#pointedAt = node
      this.#readSoon(SOONEST_READ_MS)
    }
    return { node, asking }
  }

  checkAlive(key: string | undefined): void {
    this.#nodes.ownerOf(key ?? '')?.checkAlive()
    this.#readSoon(READ_INCOMPLETE_MAP_MS)
  }

  /** In a cluster, published messages reach every node. */
  readonly subscribe: Subscribe = (channel, listener) => {
    const { clock, random, warn } = this.#dialler
    const dial = (lost: Lost) => {
      const names = [...(this.#map?.masters ?? this.#seeds)]
      const name = names[Math.floor(random() * names.length)] as string
      this.#listening.set(redial, name)
      return this.#dialler.dial(addressNamed(name), { expected: 'cluster' }, lost)
    }
    // Dials a microtask later, when the name is known.
    const later = (lost: Lost) => Promise.resolve(lost).then(dial)
    const options = { dial: later, clock, random, denied: subscribeDenied(warn) }
    const redial: Redial<Connection> = openSubscription(options, channel, listener)
    return {
      close: () => {
        this.#listening.delete(redial)
        redial.close()
      },
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#complete = false
    this.#timer?.cancel()
    this.#nodes.close()
  }

  #sameHost(port: string): string {
    const [node] = this.#nodes.all
    return `${addressNamed(node?.name ?? '').host}${port}`
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
    for (const node of this.#inOrder()) {
      const map = await this.#readMap(node)
      if (this.#closed) return
      if (map === undefined) continue
      this.#follow(map)
      this.#note(await this.#nodes.check())
      break
    }
    if (this.#closed) return
    if (this.#nodes.connected.length === 0) this.#addKnownNodes()
    this.#reading = false
    const masters = [...(this.#map?.masters ?? [])].map((name) => this.#nodes.get(name))
    const present = masters.filter((node) => node?.redial.client?.ready)
    const isComplete = masters.length > 0 && present.length === masters.length
    this.#complete = isComplete || (this.#complete && present.length > 0)
    this.#readSoon(
      isComplete && this.#setup === undefined ? READ_COMPLETE_MAP_MS : READ_INCOMPLETE_MAP_MS,
    )
  }

  /** The order in which nodes are asked for the map; mostly the first one replies. */
  #inOrder(): ClusterNode[] {
    const nodes = this.#nodes.connected
    const from = Math.floor(this.#dialler.random() * nodes.length)
    const pointedAt = nodes.filter(({ name }) => name === this.#pointedAt)
    return [...pointedAt, ...nodes.slice(from), ...nodes.slice(0, from)]
  }

  async #readMap({ name, redial }: ClusterNode): Promise<ClusterMap | undefined> {
    try {
      const sent = redial.client?.send(['CLUSTER', 'SLOTS']) ?? refuse(new Error(OFFLINE))
      const reply = await within(ANSWER_MS, this.#dialler.clock, sent)
      const map = readClusterSlots(reply, addressNamed(name).host)
      // A node that has just started, or was removed, knows no masters.
      return map.masters.size > 0 ? map : undefined
    } catch (error) {
      if (messageOf(error).startsWith('NOPERM')) this.#note(mapDeniedError(error))
      return undefined
    }
  }

  #note(problem: RedisSetupError | undefined): void {
    if (problem !== undefined) this.#dialler.warn(problem.message, UNREACHABLE_CODE)
    this.#setup = problem
  }

  #follow(map: ClusterMap): void {
    this.#map = map
    this.#pointedAt = undefined
    this.#nodes.follow(map)
    // A removed node is alive but gets no messages.
    for (const [redial, name] of this.#listening) {
      if (!map.nodes.has(name) && !this.#seeds.includes(name)) {
        redial.hangUp(new Error(`${name} is no longer a node of the cluster`))
      }
    }
  }

  /** No known node is connected, so the configured ones are tried again. */
  #addKnownNodes(): void {
    for (const name of this.#seeds) this.#nodes.add(name)
    for (const name of this.#map?.nodes ?? []) this.#nodes.add(name)
  }
}

function mapDeniedError(cause: unknown): RedisSetupError {
  const problem = 'the user Spillway logs in as may not run CLUSTER SLOTS'
  const help = 'Grant it: ACL SETUSER … +cluster|slots'
  return new RedisSetupError(`the cluster: ${problem}. ${help}`, cause)
}
