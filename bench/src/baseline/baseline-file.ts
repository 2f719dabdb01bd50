/** Reads and writes bench/baseline.json. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BenchError } from '../bench-error.js'
import { type Baseline, type Recording, type RunFigure, spreadOf } from './baseline.js'

const FILE = fileURLToPath(new URL('../../baseline.json', import.meta.url))
const DESCRIBE = ['describe', '--always', '--dirty', '--abbrev=8', '--exclude=*']

export function readBaseline(): Baseline {
  if (existsSync(FILE)) return JSON.parse(readFileSync(FILE, 'utf8'))
  throw new BenchError(
    'bench/baseline.json is missing; npm run bench -- --record-baseline writes it',
  )
}

export function currentProgram(): Omit<Recording, 'runs'> {
  return {
    date: new Date().toISOString().slice(0, 10),
    // Ends with `-dirty` if files differ from the commit.
    commit: execFileSync('git', DESCRIBE, { encoding: 'utf8' }).trim(),
    node: process.versions.node,
  }
}

/**
 * Writes the spread of each bench over its runs. Benches that were not measured keep theirs, and so do benches whose
 * recording has more runs: an interrupted recording does not replace a complete one.
 */
export function writeBaseline(
  measured: Readonly<Record<string, readonly RunFigure[]>>,
  program: Omit<Recording, 'runs'>,
  isComplete: boolean,
): void {
  const baseline: Record<string, Baseline[string]> = existsSync(FILE) ? { ...readBaseline() } : {}
  for (const [key, figures] of Object.entries(measured)) {
    const known = baseline[key]
    if (!isComplete && known !== undefined && known.recording.runs > figures.length) continue
    baseline[key] = { ...spreadOf(figures), recording: { ...program, runs: figures.length } }
  }
  writeFileSync(FILE, `${JSON.stringify(baseline, null, 2)}\n`)
}
