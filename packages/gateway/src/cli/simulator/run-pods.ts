/** `spillway simulate pods`: load on the store and accuracy of the limits, for fleets of several sizes. */
import { type PodsFigures, simulatePods } from '@spillway/simulator'
import { table } from '../text-table.js'

export interface PodsCommand {
  readonly sizes: readonly number[]
  readonly durationMs: number | undefined
  readonly seed: number | undefined
  readonly json: boolean
}

export async function runPods({ sizes, durationMs, seed, json }: PodsCommand): Promise<void> {
  const results: PodsFigures[] = []
  for (const pods of sizes) {
    const plan = { pods, ...(durationMs !== undefined && { durationMs }) }
    const onProgress = (part: number) => showProgress(pods, part)
    results.push(await simulatePods(plan, { ...(seed !== undefined && { seed }), onProgress }))
  }
  hideProgress()
  if (json) process.stdout.write(`${results.map((each) => JSON.stringify(each)).join('\n')}\n`)
  else process.stdout.write(tableOf(results))
}

/** Shown for a figure that the run was too short to measure. */
const UNKNOWN = '–'

function tableOf(results: readonly PodsFigures[]): string {
  const percent = (share: number | undefined) =>
    share === undefined ? UNKNOWN : `${(share * 100).toFixed(1)} %`
  const spread = ({ breaker }: PodsFigures, ms: number) =>
    breaker.openings === 0 ? UNKNOWN : `${ms.toFixed(1)} ms`
  const rows = results.map((each) => [
    String(each.pods),
    String(each.vendorsPerPod),
    each.commandsPerSecond.toFixed(0),
    each.commandsPerPodSecond.toFixed(2),
    percent(each.limitUse),
    percent(each.worstWindow),
    spread(each, each.breaker.spreadP50Ms),
    spread(each, each.breaker.spreadP99Ms),
  ])
  const head = [
    'pods',
    'vendors of a pod',
    'commands/s',
    'of a pod',
    'limit used',
    'fullest window',
    'breaker spread, median',
    '99th percentile',
  ]
  return `${table(head, rows)}\n`
}

function showProgress(pods: number, part: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${pods} pods ${Math.round(part * 100)} %\x1b[K`)
}

function hideProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
}
