/**
 * Text for the page: names that callers may have chosen. Cut to a limited length, well formed, and
 * with anything masked that looks like a key, because some lanes are named after the API key they
 * use.
 */
import { toUSVString } from 'node:util'
import type { Details, Priority } from 'spillway'
import { ALL_LANES, BoundedCache, PRIORITIES } from 'spillway/internal'
import type { ByPriority, EveryLane, MostText } from './wire/common-types.js'

const MOST_TEXT: MostText = 200
const MOST_REMEMBERED = 2_000

/** Prefixes of well-known keys and tokens, and the characters after them. */
const SECRETS =
  /\b(?:sk|pk|rk|xox[abprs]|gh[oprsu]|github_pat|glpat|npm|AIza|AKIA|ASIA)[-_]?[A-Za-z0-9_-]{12,}|\bBearer\s+\S+|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|:\/\/[^\s/@]*:[^\s/@]+@/gi

const remembered = new BoundedCache<string, string>(MOST_REMEMBERED)

/** Cache, because few names occur very often. */
export function shown(text: string): string {
  const known = remembered.get(text)
  if (known !== undefined) return known
  const result = cut(mask(toUSVString(text)))
  // Long texts are not cached, to limit memory.
  if (text.length <= MOST_TEXT) remembered.set(text, result)
  return result
}

function mask(text: string): string {
  return text.length < 12 ? text : text.replace(SECRETS, (found) => `${found.slice(0, 3)}…`)
}

function cut(text: string): string {
  if (text.length <= MOST_TEXT) return text
  return `${toUSVString(text.slice(0, MOST_TEXT - 1))}…`
}

const REQUEST_ID = /^[\w.:-]{1,128}$/
/** Keys have a separator after their prefix; ids of a gateway begin with random letters. */
const KEY_AS_ID =
  /^(?:[prs]k|gh[oprsu]|github_pat|glpat|npm|xox[abprs])[-_]|^(?:AIza|AKIA|ASIA|eyJ)/

/** Whether a request can be found by this id: 1 to 128 letters, digits and `_ . : -`, and not like a key. */
export function isRequestId(text: string): boolean {
  return requestIdOf(text) !== undefined
}

/** A request id for display and search; undefined if it may be a secret. */
export function requestIdOf(id: string): string | undefined {
  return REQUEST_ID.test(id) && !KEY_AS_ID.test(id) ? id : undefined
}

/** All names that are displayed as `name`: masked keys may be equal. */
export function namesShownAs(name: string, known: Iterable<string>): string[] {
  return [...new Set(known)].filter((each) => each === name || shown(each) === name)
}

/** Whether it may have been cut. */
export function isShortened(name: string): boolean {
  return name.includes('…')
}

/** The name of state that applies to all lanes. */
export const EVERY_LANE: EveryLane = '(all lanes)'

export function shownLane(lane: string): string {
  return lane === ALL_LANES ? EVERY_LANE : shown(lane)
}

const MOST_NUMBERS = 20

/** Numbers of a decision, rounded, without values that JSON lacks. */
export function shownNumbers(details: Details): Record<string, number | string | boolean> {
  const result: Record<string, number | string | boolean> = {}
  for (const [name, value] of Object.entries(details).slice(0, MOST_NUMBERS)) {
    if (typeof value === 'number') {
      if (Number.isFinite(value)) result[name] = rounded(value)
    } else result[name] = typeof value === 'string' ? shown(value) : value
  }
  return result
}

/** Milliseconds in readable form: 80 ms, 2.1 s, 12 min. */
export function readableMs(ms: unknown): string {
  const value = Number(ms)
  if (value < 1_000) return `${Math.round(value)} ms`
  if (value < 60_000) return `${Math.round(value / 100) / 10} s`
  if (value < 3_600_000) return `${Math.round(value / 6_000) / 10} min`
  return `${Math.round(value / 360_000) / 10} h`
}

/** Replaces all milliseconds in a sentence. */
export function withReadableTimes(sentence: string): string {
  return sentence.replace(/\b(\d+(?:\.\d+)?) ms\b/g, (_, ms) => readableMs(ms))
}

/** Most important first. */
export function inOrder(byPriority: Readonly<Record<Priority, number>>): ByPriority {
  return PRIORITIES.map((each) => byPriority[each]) as ByPriority
}

export function rounded(value: number): number {
  return Math.round(value * 100) / 100
}
