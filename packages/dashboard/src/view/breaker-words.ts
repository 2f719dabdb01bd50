/** How states of breakers look and what they mean. */
import type { BreakerCode, BreakerTick, GuardTick } from '../wire'
import type { Tone } from './bits'
import type { IconName } from './icons'

export type BreakerLook = BreakerTick['state'] | 'self-isolated' | 'none'

export const BREAKER_LOOKS: Record<BreakerLook, { tone: Tone; icon: IconName; word: string }> = {
  closed: { tone: 'good', icon: 'closed', word: 'closed' },
  'half-open': { tone: 'warn', icon: 'half-open', word: 'half-open' },
  open: { tone: 'refused', icon: 'open', word: 'open' },
  isolated: { tone: 'iso', icon: 'isolated', word: 'isolated' },
  'self-isolated': { tone: 'iso', icon: 'isolated', word: 'isolates itself' },
  none: { tone: 'quiet', icon: 'none', word: 'no breaker' },
}

const BY_CODE: Record<BreakerCode, BreakerLook> = {
  [-1]: 'none',
  0: 'closed',
  1: 'half-open',
  2: 'open',
  3: 'isolated',
  4: 'self-isolated',
}

export function lookOfCode(code: BreakerCode): BreakerLook {
  return BY_CODE[code] ?? 'none'
}

export function lookOf(breaker: BreakerTick | undefined): BreakerLook {
  if (breaker === undefined) return 'none'
  return breaker.selfIsolated ? 'self-isolated' : breaker.state
}

const GRAVITY: BreakerLook[] = ['none', 'closed', 'half-open', 'self-isolated', 'open', 'isolated']

/** Of several lanes. */
export function worstLook(guard: GuardTick): BreakerLook {
  let worst = 0
  for (const { breaker } of guard.lanes) worst = Math.max(worst, GRAVITY.indexOf(lookOf(breaker)))
  return GRAVITY[worst] as BreakerLook
}
