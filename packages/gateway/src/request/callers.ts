/**
 * Who may use the gateway, and as whom. The configuration has the SHA-256 of each key. A map finds it by a hash that V8
 * seeds anew in each process, so how long that takes says nothing about any key; what it finds is compared
 * in constant time. A connection says the same key again and again: the one that was last proven on it is
 * known with it, and not hashed again. Nothing of that outlives the connection, or this configuration.
 */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Priority } from 'spillway'
import type { CallerConfig } from '../config/config.js'
import { hashOfKey } from '../config/key-hash.js'
import type { ClientRequest } from './client-http.js'

export interface Caller {
  readonly user: string
  readonly tier: string | undefined
  readonly priority: Priority
}

interface Known {
  readonly digest: Buffer
  readonly caller: Caller
}

/** The key that was right on a connection, and whose it is. */
interface Proven {
  readonly key: string
  readonly caller: Caller
}

const PRIORITIES: ReadonlySet<unknown> = new Set<Priority>(['critical', 'high', 'normal', 'low'])
const ANONYMOUS: Caller = { user: 'anonymous', tier: undefined, priority: 'normal' }

export class Callers {
  /** Without any, whoever reaches the gateway may use it. */
  readonly #byHash: ReadonlyMap<string, Known> | undefined
  readonly #provenOn = new WeakMap<object, Proven>()

  constructor(callers: readonly CallerConfig[] | undefined) {
    this.#byHash =
      callers &&
      new Map(
        callers.map(({ keyHash, user, tier, priority }) => [
          keyHash,
          { digest: Buffer.from(keyHash, 'latin1'), caller: { user, tier, priority } },
        ]),
      )
  }

  /** Clients present keys of ours, not of the vendor's. */
  get known(): boolean {
    return this.#byHash !== undefined
  }

  /** Nothing: the key is none of ours. */
  find(
    key: string | undefined,
    { headers, socket }: Pick<ClientRequest, 'headers' | 'socket'>,
  ): Caller | undefined {
    if (this.#byHash === undefined) return self(headers)
    if (key === undefined) return undefined
    const proven = this.#provenOn.get(socket)
    // Others may share it, behind a proxy: a guess of theirs takes as long as any other.
    if (proven !== undefined && isSame(proven.key, key)) return proven.caller
    const caller = this.#check(this.#byHash, key)
    if (caller !== undefined) this.#provenOn.set(socket, { key, caller })
    return caller
  }

  #check(byHash: ReadonlyMap<string, Known>, key: string): Caller | undefined {
    const digest = hashOfKey(key)
    const known = byHash.get(digest)
    if (known === undefined) return undefined
    return timingSafeEqual(known.digest, Buffer.from(digest, 'latin1')) ? known.caller : undefined
  }
}

/** Takes as long for every key of this length, however much of it is right. */
function isSame(proven: string, key: string): boolean {
  if (proven.length !== key.length) return false
  let difference = 0
  for (let i = 0; i < proven.length; i++) difference |= proven.charCodeAt(i) ^ key.charCodeAt(i)
  return difference === 0
}

/** Where nobody is checked, everybody is taken at their word. */
function self(headers: IncomingHttpHeaders): Caller {
  const { 'spillway-user': user, 'spillway-tier': tier, 'spillway-priority': priority } = headers
  if (user === undefined && tier === undefined && priority === undefined) return ANONYMOUS
  return {
    user: one(user) ?? ANONYMOUS.user,
    tier: one(tier),
    priority: PRIORITIES.has(priority) ? (priority as Priority) : ANONYMOUS.priority,
  }
}

function one(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
