/**
 * Finds out whether a store is still the one that pods know. Each guard has an epoch: a name and a
 * number that grows with every pulse. A store that was restarted empty has none. A server that took
 * over from another has a different run id, or is behind the count that some pod has seen. In each
 * case a new epoch begins. Twin: `redis/lua/pulse-guard.lua`.
 */
import type { PulseReply, PulseRequest } from './port.js'

/** A pod without a pulse for this long may be spending on its own. */
const QUIET_US = 2_500_000
/** After this time it counts as dead, and its share is divided among the others. */
const KEPT_US = 30_000_000
/**
 * After a loss, pods that knew the old epoch report within this time. Later reports come from pods with a separate
 * outage.
 */
const GATHERING_US = 10_000_000
const FAR_AHEAD_US = 1_000_000

export interface PulseState {
  epoch: string
  /** Run id of the server, which changes when it restarts. */
  run: string
  count: number
  startedUs: number
  lostUs: number
}

/** The time of the last pulse of each pod. */
export type Shares = Map<string, number>

export function pulse(
  known: PulseState | undefined,
  shares: Shares,
  request: PulseRequest,
  run: string,
  nowUs: number,
): { state: PulseState; reply: PulseReply } {
  const state = epochOf(known, request, run, nowUs)
  state.count++
  for (const [pod, atUs] of shares) {
    if (atUs <= nowUs - KEPT_US || atUs > nowUs + FAR_AHEAD_US) shares.delete(pod)
  }
  const { pod, part } = request
  if (part === 'gone') shares.delete(pod)
  if (part === 'joined') shares.set(pod, nowUs)
  if (part === 'untrusted') shares.set(pod, nowUs - QUIET_US)
  let joined = 0
  let rank = 0
  for (const [name, atUs] of shares) {
    if (atUs > nowUs - QUIET_US) joined++
    if (name < pod) rank++
  }
  const { epoch, count, lostUs } = state
  return { state, reply: { nowUs, epoch, count, lostUs, joined, pods: shares.size, rank } }
}

function epochOf(
  known: PulseState | undefined,
  { epoch, count, fresh }: PulseRequest,
  run: string,
  nowUs: number,
): PulseState {
  const behind = known !== undefined && known.epoch === epoch && known.count < count
  if (known === undefined || known.run !== run || behind) {
    const lost = known !== undefined || epoch !== ''
    return { epoch: fresh, run, count: 0, startedUs: nowUs, lostUs: lost ? nowUs : 0 }
  }
  const other = epoch !== '' && epoch !== known.epoch
  if (other && known.lostUs === 0 && nowUs - known.startedUs < GATHERING_US) known.lostUs = nowUs
  return known
}
