/** Encoding of commands to a pod. */
export interface PodCommand {
  what: 'drain'
  /** The operator, as text. */
  by: string
}

const LONGEST_BY = 200

export function packCommand({ what, by }: PodCommand, number: string): string {
  // `number` makes each command unique, because a pod ignores a repetition of its last command.
  return JSON.stringify({ v: 1, what, by: by.slice(0, LONGEST_BY), number })
}

/** Undefined if this pod does not know the command. */
export function readCommand(text: string): PodCommand | undefined {
  try {
    const { v, what, by } = JSON.parse(text) as Record<string, unknown>
    if (v !== 1 || what !== 'drain') return undefined
    return { what, by: typeof by === 'string' ? by.slice(0, LONGEST_BY) : '' }
  } catch {
    return undefined
  }
}
