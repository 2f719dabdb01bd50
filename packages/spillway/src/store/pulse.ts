/**
 * Whether a store is still the one that pods know. Each guard has an epoch: a name and a number that
 * grows with every pulse. A store that was restarted empty has none; one that took over from another
 * has run under another name, or is behind what some pod has seen. Either way a new epoch begins.
 * Twin: `redis/lua/pulse-guard.lua`.
 */
import type { PulseReply, PulseRequest } from './port.js'

/** A pod that was not heard of for this long may be spending on its own. */
const QUIET_US = 2_500_000
/** After this long it is taken for dead, and its share is everybody's again. */
const KEPT_US = 30_000_000
/** Pods that knew another epoch come within this time after a loss; later ones were away by themselves. */
const GATHERING_US = 10_000_000
const FAR_AHEAD_US = 1_000_000

export interface PulseState {
  epoch: string
  /** Of the server, which gets another one when it starts. */
  run: string
  count: number
  startedUs: number
  lostUs: number
}

/** By pod, when it was last heard of. */
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
  if (part === 'apart') shares.set(pod, nowUs - QUIET_US)
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
