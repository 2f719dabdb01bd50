/** Setup of the breaker claims: pods that call the same downstream. */
import {
  type BreakerAnswer,
  type BreakerPermit,
  type BreakerStateName,
  type CircuitBreaker,
  type CircuitBreakerOptions,
  createCircuitBreaker,
  type LaneOption,
} from 'spillway/shared'
import { expect } from 'vitest'
import { onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'

/** Never ends within a test. */
export const LONG_MS = 120_000
/** Short enough to wait for on a real server. */
export const SHORT_MS = 400
/** Tolerance for a busy machine. */
export const MARGIN_MS = 50
/** Changes arrive within this virtual time. In real time it only ends a test that hangs. */
const HEARD_MS = { memory: 3_000, redis: 60_000 }

type DownstreamOptions = Omit<CircuitBreakerOptions, 'name' | 'store'> &
  Partial<Pick<CircuitBreakerOptions, 'name' | 'store'>>

let downstreams = 0

/** A downstream without calls. Each call of the returned function creates one more pod. */
export function createDownstream(fleet: Fleet, options: DownstreamOptions) {
  const name = `downstream-${++downstreams}`
  return (own: Partial<DownstreamOptions> = {}): CircuitBreaker => {
    const { clock } = fleet
    const store = own.store ?? fleet.store()
    const pod = createCircuitBreaker({ name, clock, ...options, ...own, store })
    onTestFinished(() => pod.close())
    return pod
  }
}

export type Pods = ReturnType<typeof createDownstream>

/** Records `times` outcomes and waits until the store has them. */
export async function report(
  fleet: Fleet,
  pod: CircuitBreaker,
  outcome: Parameters<CircuitBreaker['record']>[0],
  times = 1,
  lane: LaneOption = {},
): Promise<void> {
  for (let time = 0; time < times; time++) pod.record(outcome, lane)
  await fleet.until(pod.flush())
}

/** Advances time in small steps until the condition holds. */
export async function eventually(fleet: Fleet, isSo: () => boolean): Promise<void> {
  const lastMs = fleet.clock.now() + HEARD_MS[fleet.kind]
  while (!isSo()) {
    expect(fleet.clock.now(), `${isSo}`).toBeLessThan(lastMs)
    await fleet.sleep(2)
  }
}

export function untilState(
  fleet: Fleet,
  pods: readonly CircuitBreaker[],
  state: BreakerStateName,
  lane: LaneOption = {},
): Promise<void> {
  return eventually(fleet, () => pods.every((pod) => pod.state(lane) === state))
}

/** The store's counts, as seen by a new pod. */
export async function counted(fleet: Fleet, pods: Pods, lane: LaneOption = {}) {
  const pod = pods()
  pod.state(lane)
  await fleet.until(pod.flush())
  return pod.snapshot(lane)
}

function permitOf(answer: BreakerAnswer): BreakerPermit {
  if (!answer.allowed) throw answer.error
  return answer.permit
}

/** Requests a permit that has to be granted. */
export async function enter(pod: CircuitBreaker, lane?: LaneOption): Promise<BreakerPermit> {
  return permitOf(await pod.allow(lane))
}

/** Requests permits concurrently on each pod and returns those granted. */
export async function enterTogether(
  pods: readonly CircuitBreaker[],
  times = 1,
): Promise<{ pod: CircuitBreaker; permit: BreakerPermit }[]> {
  const entries = pods.flatMap((pod) =>
    Array.from({ length: times }, async () => ({ pod, answer: await pod.allow() })),
  )
  const grants: { pod: CircuitBreaker; permit: BreakerPermit }[] = []
  for (const { pod, answer } of await Promise.all(entries)) {
    if (answer.allowed) grants.push({ pod, permit: answer.permit })
    else expect(answer.error.code).toBe('CIRCUIT_OPEN')
  }
  return grants
}

/** Pods of a downstream whose breaker has just become half-open. */
export async function halfOpen(
  fleet: Fleet,
  options: DownstreamOptions,
  count = 1,
): Promise<CircuitBreaker[]> {
  const pod = createDownstream(fleet, { openMs: SHORT_MS, ...options })
  const pods = Array.from({ length: count }, () => pod())
  await untilKnown(fleet, pods)
  await pods[0]!.trip()
  await untilState(fleet, pods, 'half-open')
  return pods
}

/** Waits until each pod knows the state of the breaker. */
export async function untilKnown(fleet: Fleet, pods: readonly CircuitBreaker[]): Promise<void> {
  for (const pod of pods) pod.state()
  await fleet.until(Promise.all(pods.map((pod) => pod.flush())))
}
