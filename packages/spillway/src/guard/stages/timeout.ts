/** Timeouts of an attempt. Without the option only the deadline of the request limits it. */
import type { Details } from '../../core/errors.js'
import { omitUndefined } from '../../core/options/omit-undefined.js'
import type { Clock } from '../../core/time/clock.js'
import type { readAdaptive } from '../../local/timeout/adaptive-timeout.js'
import type { CallLimits } from '../../local/timeout/timed-call.js'
import {
  createDeadlineTimeout,
  createLocalTimeout,
  type LocalTimeout,
} from '../../local/timeout/timeout.js'
import type { Stage } from '../pipeline/stage.js'
import { type BodyLimits, bodyLimits } from '../stream/body-limits.js'

export interface TimeoutOption {
  callMs: number | undefined
  firstByteMs: number | undefined
  idleMs: number | undefined
  unreadMs: number | undefined
  adaptive: ReturnType<typeof readAdaptive> | undefined
}

const DEFAULT_UNREAD_MS = 60_000

export class TimeoutStage implements Stage {
  readonly name = 'timeout'
  readonly scope = 'local'
  readonly per = 'attempt'
  readonly limits: CallLimits
  /** For streamed bodies. */
  readonly bodies: BodyLimits
  readonly #options: TimeoutOption | undefined

  constructor(guard: string, options: TimeoutOption | undefined, clock: Clock) {
    this.#options = options
    const limits = createTimeout(guard, options, clock)
    this.limits = limits
    this.bodies = bodyLimits(limits, options?.unreadMs ?? DEFAULT_UNREAD_MS)
  }

  passed(): Details | undefined {
    if (this.#options === undefined) return undefined
    const { callMs, firstByteMs, idleMs } = this.#options
    return omitUndefined({ callMs, firstByteMs, idleMs }) as Details
  }
}

function createTimeout(
  name: string,
  options: TimeoutOption | undefined,
  clock: Clock,
): LocalTimeout {
  const { callMs, firstByteMs, idleMs, adaptive } = options ?? {}
  if ((callMs ?? firstByteMs ?? idleMs) === undefined) return createDeadlineTimeout(name, clock)
  return createLocalTimeout({
    name,
    clock,
    ...omitUndefined({ callMs, firstByteMs, idleMs }),
    ...(adaptive !== undefined && { adaptive: omitUndefined(adaptive) }),
  })
}
