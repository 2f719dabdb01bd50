/**
 * Identifies callers by their API key. The configuration has the SHA-256 of each key. The map lookup leaks no timing
 * information about keys, because V8 seeds its string hashes anew in each process. The digest found is compared in
 * constant time. Clients repeat their key on each request of a connection, so the last valid key of a connection is
 * remembered until the connection or this configuration ends, and is not hashed again.
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

/** The last valid key of a connection, and its caller. */
interface Proven {
  readonly key: string
  readonly caller: Caller
}

const PRIORITIES: ReadonlySet<unknown> = new Set<Priority>(['critical', 'high', 'normal', 'low'])
const ANONYMOUS: Caller = { user: 'anonymous', tier: undefined, priority: 'normal' }

export class Callers {
  /** Undefined: every client that reaches the gateway may use it. */
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

  /** Whether clients send keys of the gateway. Otherwise they may send keys of the vendor. */
  get known(): boolean {
    return this.#byHash !== undefined
  }

  /** Undefined if the key is missing or unknown. */
  find(
    key: string | undefined,
    { headers, socket }: Pick<ClientRequest, 'headers' | 'socket'>,
  ): Caller | undefined {
    if (this.#byHash === undefined) return self(headers)
    if (key === undefined) return undefined
    const proven = this.#provenOn.get(socket)
    // Behind a proxy several clients share a connection, so this comparison takes constant time as well.
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

/** Compares in constant time for keys of the same length. */
function isSame(proven: string, key: string): boolean {
  if (proven.length !== key.length) return false
  let difference = 0
  for (let i = 0; i < proven.length; i++) difference |= proven.charCodeAt(i) ^ key.charCodeAt(i)
  return difference === 0
}

/** Without `callers`, clients name their own user, tier and priority. */
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
