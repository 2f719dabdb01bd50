/** The decisions and requests of several workers, for the dashboard, which one worker serves. */
import type { Decision, KnownRequest, PeerDecisions } from '@spillway/dashboard'
import type { SupervisedWorker } from './supervised-worker.js'

/** A worker that does not answer must not hold back the decisions of the others. */
const ANSWER_MS = 1_000
const MOST_RECORDS = 200

/** The newest first. `cursors`: how far the dashboard has read each worker, by slot. */
export async function mergeDecisions(
  workers: readonly Pick<SupervisedWorker, 'slot' | 'channel'>[],
  cursors: Readonly<Record<string, string>>,
): Promise<PeerDecisions> {
  const next: Record<string, string> = {}
  const records: Decision[] = []
  let seen = 0
  await Promise.all(
    workers.map(async ({ slot, channel }) => {
      const cursor = cursors[String(slot)]
      const page = await channel
        .call('decisions', { cursor }, { timeoutMs: ANSWER_MS })
        .catch(() => undefined)
      // Its cursor stays, so the next request repeats this page.
      const reached = page?.cursor ?? cursor
      if (reached !== undefined) next[String(slot)] = reached
      if (page === undefined) return
      seen += page.seen
      records.push(...page.records)
    }),
  )
  records.sort((one, other) => endOf(other) - endOf(one))
  return { cursors: next, seen, records: records.slice(0, MOST_RECORDS) }
}

/** Data of the workers about a request. A worker that does not answer counts as knowing nothing. */
export async function findRequest(
  workers: readonly Pick<SupervisedWorker, 'channel'>[],
  requestId: string,
): Promise<readonly KnownRequest[]> {
  const answers = workers.map(({ channel }) =>
    channel.call('find', requestId, { timeoutMs: ANSWER_MS }).catch(() => ({ decisions: [] })),
  )
  return Promise.all(answers)
}

function endOf({ at, tookMs }: Decision): number {
  return at + tookMs
}
