/** The last decisions, at most `MOST_DECISIONS`: a ring, because thousands may arrive in a second. */
import type { Decision, EndCode } from '../wire'

export const MOST_DECISIONS = 3_000

export interface DecisionFilter {
  /** Part of a request id. */
  request: string
  user: string
  guard: string
  stage: string
  code: string
}

export const NO_FILTER: DecisionFilter = {
  request: '',
  user: '',
  guard: '',
  stage: '',
  code: '',
}

export class DecisionLog {
  readonly #ring: Decision[] = []
  #next = 0
  /** Number of decisions added since the start. */
  added = 0

  add(decisions: readonly Decision[]): void {
    for (const each of decisions) {
      this.#ring[this.#next] = each
      this.#next = (this.#next + 1) % MOST_DECISIONS
    }
    this.added += decisions.length
  }

  /** Decisions of one request, the oldest first. */
  ofRequest(requestId: string | undefined): Decision[] {
    if (requestId === undefined) return []
    const found = this.#ring.filter((each) => each.requestId === requestId)
    return found.sort((one, other) => one.at - other.at || one.id - other.id)
  }

  clear(): void {
    this.#ring.length = 0
    this.#next = 0
  }

  /** Newest first. */
  newest(filter: DecisionFilter): Decision[] {
    const user = filter.user.trim().toLowerCase()
    const request = filter.request.trim()
    const found: Decision[] = []
    const { length } = this.#ring
    for (let back = 1; back <= length; back++) {
      const each = this.#ring[(this.#next - back + length) % length] as Decision
      if (filter.guard !== '' && each.guard !== filter.guard) continue
      if (filter.stage !== '' && each.stage !== filter.stage) continue
      if (!hasCode(each, filter.code)) continue
      if (request !== '' && !(each.requestId ?? '').includes(request)) continue
      if (user !== '' && !(each.user ?? '').toLowerCase().includes(user)) continue
      found.push(each)
    }
    // Decisions of other processes arrive later than those of this one.
    return found.sort((one, other) => endOf(other) - endOf(one))
  }
}

function endOf({ at, tookMs }: Decision): number {
  return at + tookMs
}

/** `refused` matches every refusal, and `failed` every call that the downstream did not answer successfully. */
function hasCode({ code }: Decision, wanted: string): boolean {
  if (wanted === '') return true
  if (wanted === 'refused') return isRefusal(code)
  if (wanted === 'failed') return code === 'FAILED' || code === 'REJECTED'
  return code === wanted
}

const ENDS: ReadonlySet<string> = new Set<EndCode>([
  'OK',
  'DEGRADED',
  'FAILED',
  'REJECTED',
  'ABORTED',
])

/** Spillway itself, or the gateway, refused it. */
export function isRefusal(code: Decision['code']): boolean {
  return !ENDS.has(code)
}
