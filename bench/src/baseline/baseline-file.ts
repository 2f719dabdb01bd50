/** Reads and writes bench/baseline.json. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BenchError } from '../bench-error.js'
import { type Baseline, type Recording, type RunFigure, spreadOf } from './baseline.js'

const FILE = fileURLToPath(new URL('../../baseline.json', import.meta.url))

export function readBaseline(): Baseline {
  if (existsSync(FILE)) return JSON.parse(readFileSync(FILE, 'utf8'))
  throw new BenchError(
    'bench/baseline.json is missing; npm run bench -- --record-baseline writes it',
  )
}

export function currentProgram(): Omit<Recording, 'runs'> {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: currentCommit(),
    node: process.versions.node,
  }
}

/** Ends with `-dirty` if other files than the baseline differ from the commit. */
function currentCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const others = [':(top)', ':(top,exclude)bench/baseline.json']
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', ...others)
  return `${git('rev-parse', '--short=8', 'HEAD')}${changed === '' ? '' : '-dirty'}`
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
