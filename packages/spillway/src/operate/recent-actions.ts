/**
 * Recent operator actions, kept in the store for a minute. A command-line process ends as soon as
 * it has acted, but its action belongs into the log of every pod. Each action is stored as a pod
 * with one heartbeat.
 */
import { randomUUID } from 'node:crypto'
import type { Store } from '../store/port.js'
import { ACTIONS, type OperatorAction, type OperatorResult } from './actions.js'

/** An action of the recent past. */
export interface RecentAction extends OperatorResult {
  /** Id of the action, unique in the fleet. */
  id: string
  /** Milliseconds since then. */
  ageMs: number
  /** It was performed in this process, which has emitted its event. */
  own: boolean
}

const GROUP = 'operators:actions'
const LIFE_US = 60_000_000
/** Longest text, because callers may choose its content. */
const LONGEST = 500

const PROCESS = randomUUID()
let actions = 0

/** Resolves when it is stored. A failure does not affect the action. */
export async function post(store: Store, result: OperatorResult): Promise<void> {
  const pod = `${PROCESS}:${++actions}`
  const snapshot = JSON.stringify(result)
  try {
    await store.pods.beat({ group: GROUP, pod, lifeUs: LIFE_US, snapshot })
  } catch {
    // Other processes will not see it.
  }
}

/** The oldest first. */
export async function readRecent(store: Store): Promise<RecentAction[]> {
  const records = await store.pods.list({ group: GROUP })
  const known = records.flatMap(({ pod, snapshot, ageUs }): RecentAction[] => {
    const result = parsed(snapshot)
    const own = pod.startsWith(`${PROCESS}:`)
    return result === undefined ? [] : [{ id: pod, ageMs: ageUs / 1_000, own, ...result }]
  })
  return known.sort((a, b) => b.ageMs - a.ageMs)
}

/** Undefined if another version wrote it in another format. */
function parsed(snapshot: string): OperatorResult | undefined {
  try {
    const result = JSON.parse(snapshot) as Partial<Record<keyof OperatorResult, unknown>>
    if (typeof result.action !== 'string' || !Object.hasOwn(ACTIONS, result.action))
      return undefined
    return {
      action: result.action as OperatorAction,
      guard: textIn(result.guard) ?? '',
      by: textIn(result.by) ?? '',
      from: textIn(result.from),
      lane: textIn(result.lane),
      ...(typeof result.key === 'string' && { key: result.key.slice(0, LONGEST) }),
      forMs: numberIn(result.forMs),
      unit: textIn(result.unit),
      limit: numberIn(result.limit),
      message: textIn(result.message) ?? '',
    }
  } catch {
    return undefined
  }
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, LONGEST) : undefined
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
