/** The plots of a report: one row each, with Spillway on the left and without on the right. */
import type { RunSummary } from '../measure/summary.js'
import type { Simulation } from '../run/simulate.js'
import type { Line } from './chart.js'
import { formatCount, formatMs, formatShare } from './format.js'
import { refusalsByStage } from './stages.js'

export interface Row {
  readonly title: string
  /** A hint for readers of the plot. */
  readonly hint: string
  readonly format: (value: number) => string
  readonly lines: (run: RunSummary) => Line[]
  /** Text beside the name of a run. Default: the maximum of its series. */
  readonly caption?: (run: RunSummary) => string
}

export function rowsOf({ spillway, naive }: Simulation): Row[] {
  const runs = [spillway, naive]
  const rows = [OFFERED, REFUSED, LATENCY, AT_VENDOR, AMPLIFICATION]
  if (runs.some(({ series }) => series.windowUse.length > 0)) rows.splice(4, 0, WINDOWS)
  if (runs.some(({ series }) => series.waiting.some((each) => each > 0))) rows.push(WAITING)
  if (new Set(spillway.series.pods).size > 1) rows.push(PODS)
  return rows
}

const OFFERED: Row = {
  title: 'Requests that came, and those that were served',
  hint: 'A second each. The closer the two lines the better; under overload the second should lie at the capacity.',
  format: formatCount,
  caption: ({ totals }) =>
    `${formatCount(totals.served)} of ${formatCount(totals.requests)} served in all`,
  lines: (run) => [
    { name: 'came', colour: 'grey', values: perSecond(run, run.series.offered) },
    { name: 'served in time', colour: 'good', values: perSecond(run, run.series.served) },
    ...limitLine(run, 'capacity', run.capacityRps),
  ],
}

const REFUSED: Row = {
  title: 'Not served, by where they were turned away',
  hint: 'One second each. A refusal is immediate and costs almost nothing; “failed, or too late” has cost the vendor its work.',
  format: formatCount,
  lines: (run) =>
    refusalsByStage(run).map(({ name, colour, values }) => ({
      name,
      colour,
      values: perSecond(run, values),
      stacked: true,
    })),
}

const LATENCY: Row = {
  title: 'Time to a good answer',
  hint: 'Half of the good answers come within the first line, 99 of 100 within the second. No line: no good answers.',
  format: formatMs,
  lines: ({ series }) => [
    { name: 'median', colour: 'good', values: series.p50Ms },
    { name: '99th percentile', colour: 'c6', values: series.p99Ms },
  ],
}

const AT_VENDOR: Row = {
  title: 'Calls at the vendor at once',
  hint: 'What lies above its capacity waits there, or makes all calls slower.',
  format: formatCount,
  lines: (run) => [
    { name: 'at once', colour: 'good', values: run.series.vendorAtOnce },
    ...limitLine(run, 'capacity', run.capacity),
  ],
}

const WINDOWS: Row = {
  title: 'Fullest window, against the contract',
  hint: 'Calls in the vendor’s window, wherever it begins. Above 100 % the vendor answers 429, or bans the key.',
  format: formatShare,
  lines: (run) => [
    { name: 'used', colour: 'good', values: run.series.windowUse },
    ...limitLine(run, 'contract', 1),
  ],
}

const AMPLIFICATION: Row = {
  title: 'Calls at the vendor for each request',
  hint: 'Retries multiply load. 1 is none; below 1 some requests never got there.',
  format: (value) => `${formatCount(value)}×`,
  lines: (run) => [
    {
      name: 'calls per request',
      colour: 'good',
      values: ratios(run.series.vendorCalls, run.series.offered),
    },
    ...limitLine(run, 'one each', 1),
  ],
}

const WAITING: Row = {
  title: 'Requests in line inside the pods',
  hint: 'A line that only grows is memory, and answers that come too late.',
  format: formatCount,
  lines: ({ series }) => [{ name: 'waiting', colour: 'good', values: series.waiting }],
}

const PODS: Row = {
  title: 'Pods that serve',
  hint: 'The limits are the fleet’s, however many there are.',
  format: formatCount,
  lines: ({ series }) => [{ name: 'pods', colour: 'good', values: series.pods }],
}

function perSecond({ stretchMs }: RunSummary, counts: readonly number[]): number[] {
  return counts.map((count) => (count * 1_000) / stretchMs)
}

/** Average over five intervals, to smooth spikes of single calls. */
function ratios(counts: readonly number[], of: readonly number[]): (number | null)[] {
  return counts.map((_, at) => {
    const [calls, requests] = [around(counts, at), around(of, at)]
    return requests === 0 ? null : calls / requests
  })
}

function around(counts: readonly number[], at: number): number {
  return counts.slice(Math.max(0, at - 2), at + 3).reduce((sum, each) => sum + each, 0)
}

function limitLine(run: RunSummary, name: string, value: number | null): Line[] {
  if (value === null) return []
  const values = new Array<number>(run.series.offered.length).fill(value)
  return [{ name, colour: 'limit-colour', values, dashed: true }]
}
