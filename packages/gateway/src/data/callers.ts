/**
 * Who may use the gateway, and as whom. Of a key only its SHA-256 is kept. A map finds it by a hash that V8
 * seeds anew in each process, so how long that takes says nothing about any key; what it finds is compared
 * in constant time.
 */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Priority } from 'spillway'
import type { CallerConfig } from '../config/config.js'
import { hashOfKey } from '../config/key-hash.js'
import { owned } from '../wire/owned.js'

export interface Caller {
  readonly user: string
  readonly tier: string | undefined
  readonly priority: Priority
}

interface Known {
  readonly digest: Buffer
  readonly caller: Caller
}

const PRIORITIES: ReadonlySet<unknown> = new Set<Priority>(['critical', 'high', 'normal', 'low'])
const ANONYMOUS: Caller = { user: 'anonymous', tier: undefined, priority: 'normal' }

export class Callers {
  /** Without any, whoever reaches the gateway may use it. */
  readonly #byHash: ReadonlyMap<string, Known> | undefined

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
  find(key: string | undefined, headers: IncomingHttpHeaders): Caller | undefined {
    if (this.#byHash === undefined) return self(headers)
    if (key === undefined) return undefined
    const digest = hashOfKey(key)
    const known = this.#byHash.get(digest)
    if (known === undefined) return undefined
    return timingSafeEqual(known.digest, Buffer.from(digest, 'latin1')) ? known.caller : undefined
  }
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

/** Limits remember it for longer than its request lasts. */
function one(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? owned(value) : undefined
}
