/** Encoding of commands to a pod. */
export interface PodAsk {
  what: 'drain'
  /** The operator, as text. */
  by: string
}

const LONGEST_BY = 200

export function packAsk({ what, by }: PodAsk, number: string): string {
  // A repeated command gets a new id, because the pod may have been commanded to forget the first one.
  return JSON.stringify({ v: 1, what, by: by.slice(0, LONGEST_BY), number })
}

/** Undefined if this pod does not know the command. */
export function readAsk(ask: string): PodAsk | undefined {
  try {
    const { v, what, by } = JSON.parse(ask) as Record<string, unknown>
    if (v !== 1 || what !== 'drain') return undefined
    return { what, by: typeof by === 'string' ? by.slice(0, LONGEST_BY) : '' }
  } catch {
    return undefined
  }
}
