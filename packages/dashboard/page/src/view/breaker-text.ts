/** Colours, icons and texts of breaker states. */
import { guardByName, guardCards } from '../model/live'
import type { BreakerCode, BreakerTick, EveryLane } from '../wire'
import type { Tone } from './elements'
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

export const EVERY_LANE: EveryLane = '(all lanes)'

/** The worst state of several lanes. A breaker without calls is closed. */
export function lookOfGuard(name: string): BreakerLook {
  return worstOf(name, () => true)
}

/** State of one lane: of its own breaker, or of the guard's breaker. */
export function lookOfLane(name: string, lane: string): BreakerLook {
  return worstOf(name, (each) => each === lane || each === EVERY_LANE)
}

function worstOf(name: string, counts: (lane: string) => boolean): BreakerLook {
  const guarded = guardCards.value.find((card) => card.name === name)?.breaker !== undefined
  let worst = guarded ? GRAVITY.indexOf('closed') : 0
  for (const { lane, breaker } of guardByName.value.get(name)?.lanes ?? []) {
    if (counts(lane)) worst = Math.max(worst, GRAVITY.indexOf(lookOf(breaker)))
  }
  return GRAVITY[worst] as BreakerLook
}
