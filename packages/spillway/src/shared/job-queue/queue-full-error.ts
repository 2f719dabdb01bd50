/** The refusal of `add` and `addMany`: the queue, or the tenant's share of it, is full. */
import { SpillwayError } from '../../core/errors.js'
import type { Random } from '../../core/random.js'
import type { AddReply } from '../../store/queue-port.js'
import type { AddedJob } from './api.js'

export interface FullQueue {
  name: string
  maxSize: number
  maxPerTenant: number
  /** Tenant of the first job that did not fit; empty: none. */
  tenant: string
  reply: Pick<AddReply, 'size' | 'tenantSize'>
  /** Jobs of the same call that were added before. */
  added: readonly AddedJob[]
  random: Random
}

/** How fast workers are is not known here. Varied, so that refused callers do not come back at the same moment. */
const WAIT_MS = 10_000
const JITTER = 0.2

/** Thrown when a job is added to a full job queue. */
export class QueueFullError extends SpillwayError {
  /** Jobs of the same `addMany` that were added: the first ones, in their order. */
  readonly added: readonly AddedJob[]

  constructor(full: FullQueue) {
    const retryAfterMs = Math.round(WAIT_MS * (1 - JITTER + full.random() * 2 * JITTER))
    const waiting = { retryAfterMs, ...described(full) }
    super({ code: 'QUEUE_FULL', stage: 'queue', scope: 'shared', ...waiting })
    this.added = full.added
  }
}

function described({ name, maxSize, maxPerTenant, tenant, reply, added: { length } }: FullQueue) {
  const { size, tenantSize } = reply
  const details = { name, size, maxSize, added: length }
  if (tenantSize === undefined) {
    const explain = () =>
      `queue ${name} is full: ${size} of ${maxSize} jobs have not ended; raise maxSize or add workers`
    return { details, explain }
  }
  const explain = () =>
    `queue ${name} is full for tenant ${tenant}: ${tenantSize} of its jobs have not ended, and ` +
    `maxPerTenant is ${maxPerTenant}; raise it or wait until some have ended`
  return { details: { ...details, tenant, tenantSize, maxPerTenant }, explain }
}
