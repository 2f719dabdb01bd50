/**
 * The alerts of deploy/prometheus with all durations divided by 60, so that a minute becomes a second. Only `for` and the
 * ranges of queries are durations; thresholds and labels stay as they are.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const SCALE = 60
const FILE = fileURLToPath(new URL('../../../deploy/prometheus/alerts.yaml', import.meta.url))
const UNIT_SECONDS = { s: 1, m: 60, h: 3_600 } as const
const DURATION = /(for: |\[)(\d+)([smh])(?=\]|\n)/g

export interface ScaledRules {
  /** Names of all alerts, in the order of the file. */
  readonly alerts: readonly string[]
  readonly yaml: string
}

export function scaledRules(): ScaledRules {
  const original = readFileSync(FILE, 'utf8')
  const alerts = [...original.matchAll(/- alert: (\w+)/g)].map(([, name]) => name as string)
  const yaml = original.replace(DURATION, (_, before: string, amount: string, unit: string) => {
    const seconds = Number(amount) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS]
    return `${before}${Math.round((seconds / SCALE) * 1_000)}ms`
  })
  return { alerts, yaml }
}
