/** Outage rules: what a mechanism does while the store is unreachable. */
import { OptionsError, oneOf, optional, renamed } from '../../core/options/checks.js'
import { suggest } from '../../core/options/suggest.js'

/**
 * - `share`: uses this pod's equal share of the limit, so that the fleet stays within it;
 * - `local`: counts as if this pod were alone;
 * - `allow`: lets everything through;
 * - `refuse`: refuses with STORE_UNAVAILABLE.
 */
export type OutageRule = 'share' | 'local' | 'allow' | 'refuse'

/** The former names mean the opposite for a breaker. */
const FORMER_RULES = { open: 'allow', closed: 'refuse' }

const sharedRule = renamed(oneOf('share', 'local', 'allow', 'refuse'), FORMER_RULES)
/** A breaker has nothing to share. */
const breakerRule = renamed(oneOf('local', 'allow', 'refuse'), FORMER_RULES)

export const limitOutage = optional(sharedRule, 'share')
/** Its default depends on the level: see `defaultLevelOutage`. */
export const levelOutage = optional(sharedRule)
export const breakerOutage = optional(breakerRule, 'local')

/**
 * Levels that many callers use together are shared between pods. A level of one user or address is counted by each
 * pod alone: an equal share of a small limit would refuse users whose requests all reach the same pod.
 */
export function defaultLevelOutage(per: string): OutageRule {
  return per === 'global' || per === 'tier' ? 'share' : 'local'
}

const ENVIRONMENT_VARIABLE = 'SPILLWAY_SHARED'

/** `SPILLWAY_SHARED=off`: a pod uses local state only, independent of its options. */
export function isSharingOff(env: NodeJS.ProcessEnv = process.env): boolean {
  const value = env[ENVIRONMENT_VARIABLE] ?? ''
  if (value === '' || value === 'on') return false
  if (value === 'off') return true
  const close = suggest(value, ['on', 'off'])
  const hint = close === undefined ? '' : `; did you mean '${close}'?`
  const message = `must be one of 'on', 'off', got ${JSON.stringify(value)}${hint}`
  throw new OptionsError([{ path: ENVIRONMENT_VARIABLE, message }])
}
