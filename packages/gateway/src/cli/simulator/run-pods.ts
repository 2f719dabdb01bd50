/** `spillway simulate pods`: load on the store and accuracy of the limits, for fleets of several sizes. */
import {
  DEFAULT_PODS_PLAN,
  type PodsFigures,
  type PodsPlan,
  simulatePods,
} from '@spillway/simulator'
import { UsageError } from '../parse-args.js'

export interface PodsCommand {
  readonly sizes: readonly number[]
  /** Differences from the usual plan. */
  readonly plan: Partial<Pick<PodsPlan, 'durationMs' | 'outageEveryMs'>>
  readonly seed: number | undefined
  readonly json: boolean
}

/** Prints the figures of each size as soon as they are known, because large fleets take long. */
export async function runPods({ sizes, plan, seed, json }: PodsCommand): Promise<void> {
  const { outageMs } = DEFAULT_PODS_PLAN
  if (plan.outageEveryMs !== undefined && plan.outageEveryMs <= outageMs) {
    throw new UsageError(`--outage-every: must be longer than an outage, ${outageMs / 1_000}s`)
  }
  if (!json) process.stdout.write(row(HEAD))
  for (const pods of sizes) {
    const onProgress = (part: number) => showProgress(pods, part)
    const options = { ...(seed !== undefined && { seed }), onProgress }
    const figures = await simulatePods({ ...plan, pods }, options)
    hideProgress()
    process.stdout.write(json ? `${JSON.stringify(figures)}\n` : row(cellsOf(figures)))
  }
}

const HEAD = [
  'pods'.padEnd(7),
  'vendors of a pod',
  'commands/s',
  'of a pod',
  'limit used',
  'fullest window',
  'breaker spread, median',
  'most',
]
/** Shown for a figure that cannot be measured: the run was too short, or an outage or its recovery never ended. */
const UNKNOWN = '–'

function row(cells: readonly string[]): string {
  const padded = cells.map((cell, column) => cell.padEnd(HEAD[column]!.length))
  return `${padded.join('  ').trimEnd()}\n`
}

function cellsOf(figures: PodsFigures): string[] {
  const { breaker } = figures
  const percent = (share: number | undefined) =>
    share === undefined ? UNKNOWN : `${(share * 100).toFixed(1)} %`
  const spread = (ms: number) => (breaker.openings === 0 ? UNKNOWN : `${ms.toFixed(1)} ms`)
  return [
    String(figures.pods),
    String(figures.vendorsPerPod),
    figures.commandsPerSecond.toFixed(0),
    figures.commandsPerPodSecond.toFixed(2),
    percent(figures.limitUse),
    percent(figures.worstWindow),
    spread(breaker.spreadP50Ms),
    spread(breaker.spreadMostMs),
  ]
}

function showProgress(pods: number, part: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${pods} pods ${Math.round(part * 100)} %\x1b[K`)
}

function hideProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
}
