/** Refusals by stage, in pipeline order, each with its colour. */
import type { RunSummary } from '../measure/summary.js'

export interface StageSeries {
  readonly name: string
  /** Name of a colour of the page. */
  readonly colour: string
  readonly values: number[]
}

const STAGES: readonly { name: string; colour: string; codes: readonly string[] }[] = [
  { name: 'load shedding', colour: 'c1', codes: ['SHED'] },
  { name: 'user limit', colour: 'c2', codes: ['USER_LIMITED'] },
  { name: 'queue', colour: 'c3', codes: ['QUEUE_FULL', 'QUEUE_TIMEOUT'] },
  { name: 'breaker', colour: 'c4', codes: ['CIRCUIT_OPEN'] },
  { name: 'vendor limit, throttle', colour: 'c5', codes: ['VENDOR_LIMITED', 'THROTTLED'] },
  { name: 'timeout', colour: 'c6', codes: ['CALL_TIMEOUT', 'DEADLINE_EXCEEDED'] },
  { name: 'store, closing', colour: 'c7', codes: ['STORE_UNAVAILABLE', 'SHUTTING_DOWN'] },
]

/** Stages that refused calls, and other failures. */
export function refusalsByStage({ series }: RunSummary): StageSeries[] {
  const known = STAGES.flatMap(({ codes }) => codes)
  const others = Object.keys(series.refused).filter((code) => !known.includes(code))
  const length = series.offered.length
  const named = STAGES.map(({ name, colour, codes }) => ({
    name,
    colour,
    values: addUp(
      codes.map((code) => series.refused[code]),
      length,
    ),
  }))
  const rest = addUp([series.failed, ...others.map((code) => series.refused[code])], length)
  const failed = { name: 'failed, or too late', colour: 'c8', values: rest }
  return [...named, failed].filter(({ values }) => values.some((value) => value > 0))
}

function addUp(all: readonly (number[] | undefined)[], length: number): number[] {
  const sums = new Array<number>(length).fill(0)
  for (const values of all) for (const [at, value] of values?.entries() ?? []) sums[at]! += value
  return sums
}
