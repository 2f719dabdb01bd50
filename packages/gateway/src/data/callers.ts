/** Who may use the gateway, and as whom. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Priority } from 'spillway'
import type { CallerConfig } from '../config/config.js'

export interface Caller {
  readonly user: string
  readonly tier: string | undefined
  readonly priority: Priority
}

const PRIORITIES: ReadonlySet<unknown> = new Set<Priority>(['critical', 'high', 'normal', 'low'])
const ANONYMOUS: Caller = { user: 'anonymous', tier: undefined, priority: 'normal' }

export class Callers {
  /** Without any, whoever reaches the gateway may use it. */
  readonly #byKey: ReadonlyMap<string, Caller> | undefined

  constructor(callers: readonly CallerConfig[] | undefined) {
    this.#byKey = callers && new Map(callers.map((caller) => [caller.secret, caller]))
  }

  /** Clients present keys of ours, not of the vendor's. */
  get known(): boolean {
    return this.#byKey !== undefined
  }

  /** Nothing: the key is none of ours. */
  find(key: string | undefined, headers: IncomingHttpHeaders): Caller | undefined {
    if (this.#byKey === undefined) return self(headers)
    return key === undefined ? undefined : this.#byKey.get(key)
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

function one(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
