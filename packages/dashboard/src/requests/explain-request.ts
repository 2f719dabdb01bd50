/** Explains one request: searches this process, then its workers, then the other pods. */
import type { Clock } from 'spillway'
import type { Random } from 'spillway/internal'
import type { Membership, Store } from 'spillway/shared'
import type { DashboardPeers } from '../feed/peer-decisions.js'
import type { Explanation } from '../wire/explain.js'
import { type FleetQuestion, isKnown, queryFleet } from './fleet-exchange.js'
import type { KnownRequest, RequestLog } from './request-log.js'

interface Around {
  readonly own: Pick<RequestLog, 'find'>
  readonly peers: DashboardPeers | undefined
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly membership: Membership
}

/** Searches all pods for a request, from a process that is not a pod. */
export async function queryPods(question: Omit<FleetQuestion, 'self'>): Promise<Explanation> {
  const { known, podsQueried, podsAnswered } = await queryFleet({ ...question, self: undefined })
  return { ...explanationOf(question.requestId, known), podsQueried, podsAnswered }
}

export async function explainRequest(requestId: string, around: Around): Promise<Explanation> {
  const { own, peers, store, clock, random, membership } = around
  const here = own.find(requestId)
  if (isKnown(here)) return explanationOf(requestId, [here])
  const found = (await peers?.find?.(requestId).catch(() => [])) ?? []
  if (found.some(isKnown)) return explanationOf(requestId, found)
  const self = membership.pod
  try {
    const members = (await membership.members()).map(({ pod }) => pod)
    const question = { store, clock, random, requestId, self, members }
    const { known, podsQueried, podsAnswered } = await queryFleet(question)
    return { ...explanationOf(requestId, known), podsQueried, podsAnswered }
  } catch {
    // The store is unreachable, so the other pods were not searched.
    const podsQueried = Math.max(0, membership.live - 1)
    return { ...explanationOf(requestId, []), podsQueried, podsAnswered: 0 }
  }
}

function explanationOf(requestId: string, known: readonly KnownRequest[]): Explanation {
  const request = known.find((each) => each.request !== undefined)?.request
  const decisions = known.flatMap((each) => each.decisions)
  return {
    requestId,
    ...(request !== undefined && { request }),
    decisions: decisions.sort((one, other) => one.at - other.at || one.id - other.id),
    podsQueried: 0,
    podsAnswered: 0,
  }
}
