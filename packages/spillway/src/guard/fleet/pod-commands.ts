/** What may be wanted of a pod, as it travels. */
export interface PodAsk {
  what: 'drain'
  /** The operator, as text. */
  by: string
}

const LONGEST_BY = 200

export function packAsk({ what, by }: PodAsk, number: string): string {
  // Asked once more it is another wish: the pod may have been told to forget the first.
  return JSON.stringify({ v: 1, what, by: by.slice(0, LONGEST_BY), number })
}

/** Nothing, if this pod knows no such wish. */
export function readAsk(ask: string): PodAsk | undefined {
  try {
    const { v, what, by } = JSON.parse(ask) as Record<string, unknown>
    if (v !== 1 || what !== 'drain') return undefined
    return { what, by: typeof by === 'string' ? by.slice(0, LONGEST_BY) : '' }
  } catch {
    return undefined
  }
}
