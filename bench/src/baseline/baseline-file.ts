/** Reads and writes bench/baseline.json. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BenchError } from '../bench-error.js'
import type { Baseline, Spread } from './baseline.js'

const FILE = fileURLToPath(new URL('../../baseline.json', import.meta.url))

export function readBaseline(): Baseline {
  if (existsSync(FILE)) return JSON.parse(readFileSync(FILE, 'utf8'))
  throw new BenchError(
    'there is no bench/baseline.json. npm run bench -- --record-baseline writes it.',
  )
}

/** Benches that were not measured keep their spread. */
export function writeBaseline(measured: Readonly<Record<string, Spread>>, runs: number): void {
  const known = existsSync(FILE) ? readBaseline().figures : {}
  const baseline: Baseline = {
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim(),
    node: process.versions.node,
    runs,
    figures: { ...known, ...measured },
  }
  writeFileSync(FILE, `${JSON.stringify(baseline, null, 2)}\n`)
}
