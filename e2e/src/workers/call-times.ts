/** Times at which a gateway started calls to its vendor, and how many of them are in one window. */

interface RequestLine {
  readonly msg: string
  readonly id: string
  readonly time: number
  readonly model?: string
  readonly waitedMs: number
  readonly durationMs: number
}

/** When each call of a model began, in milliseconds since 1970, by request id. From the log of all workers. */
export function startTimes(log: string, model: string): Map<string, number> {
  const requests = log
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as RequestLine)
    .filter((line) => line.msg === 'request' && line.model === model)
  return new Map(
    requests.map(({ id, time, durationMs, waitedMs }) => [id, time - durationMs + waitedMs]),
  )
}

/** The largest number of calls in any window. */
export function mostIn(windowMs: number, times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b)
  let first = 0
  return sorted.reduce((most, time, index) => {
    while (time - (sorted[first] as number) >= windowMs) first++
    return Math.max(most, index - first + 1)
  }, 0)
}

/** The longest time that `count` calls in a row took. */
export function longestSpan(count: number, times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.max(...sorted.slice(count).map((time, index) => time - (sorted[index] as number)))
}
