/** Checks the events of a scenario. */
import { type Check, duration, integer, number, object, oneOf, optional } from 'spillway/options'
import { type CheckedSpread, readSpread } from './spread.js'

const share = number({ min: 0, max: 1 })
const ms = duration({ min: 0 })
const some = integer({ min: 1 })

export type CheckedVendorEvent =
  | 'pause'
  | 'fail'
  | 'hang'
  | 'recover'
  | { fail: number }
  | { hang: number }
  | { slow: number }
  | { throttleMs: number }
  | { capacity: number }
  | { limits: number }
  | { slowStart: { from: number; overMs: number } }

export type CheckedStoreEvent =
  | 'down'
  | 'up'
  | 'pause'
  | 'resume'
  | 'restart'
  | { loseReplies: number }
  | { loseRequests: number }
  | { latencyMs: CheckedSpread }

export type CheckedPodsEvent =
  | { start: number; everyMs: number }
  | { stop: number; everyMs: number }
  | { kill: number }
  | { roll: number; everyMs: number }

/** Reads a name, or an object whose key is the name. */
function wordOr<T>(
  words: readonly [string, ...string[]],
  forms: Readonly<Record<string, Check<unknown>>>,
): Check<T> {
  const readWord = oneOf(...words)
  return (value, path, problems) => {
    const key = typeof value === 'object' && value !== null ? Object.keys(value) : []
    const form = key.find((each) => Object.hasOwn(forms, each))
    if (form !== undefined) return forms[form]!(value, path, problems) as T
    if (typeof value === 'string') return readWord(value, path, problems) as T
    const known = [
      ...words.map((word) => `'${word}'`),
      ...Object.keys(forms).map((k) => `{ ${k} }`),
    ]
    problems.push({ path, message: `must be one of ${known.join(', ')}` })
    return undefined as never
  }
}

const readVendorEvent = wordOr<CheckedVendorEvent>(['pause', 'fail', 'hang', 'recover'], {
  fail: object({ fail: share }),
  hang: object({ hang: share }),
  slow: object({ slow: number({ min: 0.001 }) }),
  throttleMs: object({ throttleMs: ms }),
  capacity: object({ capacity: some }),
  limits: object({ limits: number({ min: 0.001 }) }),
  slowStart: object({ slowStart: object({ from: some, overMs: ms }) }),
})

const readStoreEvent = wordOr<CheckedStoreEvent>(['down', 'up', 'pause', 'resume', 'restart'], {
  loseReplies: object({ loseReplies: share }),
  loseRequests: object({ loseRequests: share }),
  latencyMs: object({ latencyMs: readSpread }),
})

const everyMs = optional(ms, 0)
const podsForms = {
  start: object({ start: some, everyMs }),
  stop: object({ stop: some, everyMs }),
  kill: object({ kill: some }),
  roll: object({ roll: some, everyMs }),
}

const readPods: Check<CheckedPodsEvent> = (value, path, problems) => {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const form = keys.find((key) => key in podsForms) as keyof typeof podsForms | undefined
  if (form !== undefined) return podsForms[form](value, path, problems) as CheckedPodsEvent
  problems.push({ path, message: 'must be { start }, { stop }, { kill } or { roll }' })
  return undefined as never
}

export type CheckedEvent = { atMs: number } & (
  | { kind: 'vendor'; vendor: CheckedVendorEvent }
  | { kind: 'store'; store: CheckedStoreEvent; pod: number | undefined }
  | { kind: 'pods'; pods: CheckedPodsEvent }
  | { kind: 'calls'; calls: 'fail' | 'hang' | 'recover'; pod: number }
)

const pod = integer({ min: 0 })
const FORMS = {
  vendor: object({ atMs: ms, vendor: readVendorEvent }),
  store: object({ atMs: ms, store: readStoreEvent, pod: optional(pod) }),
  pods: object({ atMs: ms, pods: readPods }),
  calls: object({ atMs: ms, calls: oneOf('fail', 'hang', 'recover'), pod }),
}

export const readEvent: Check<CheckedEvent> = (value, path, problems) => {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const kind = keys.find((key) => Object.hasOwn(FORMS, key)) as keyof typeof FORMS | undefined
  if (kind === undefined) {
    problems.push({ path, message: 'must have one of vendor, store, pods, calls' })
    return undefined as never
  }
  return { kind, ...FORMS[kind](value, path, problems) } as CheckedEvent
}
