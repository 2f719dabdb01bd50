/** Writes the figures of a scenario into its page of the documentation, and its plots into `docs/diagrams`. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Figure, Scenario } from './scenario.js'

const MARKED = /(<!-- begin results -->\n).*(<!-- end results -->)/s

export function writeResults(scenario: Scenario, figures: readonly Figure[]): void {
  const { page, plots, table = listed } = scenario
  if (page === undefined) return
  const path = pathOf(page)
  const images: string[] = []
  for (const [name, svg] of Object.entries(plots?.() ?? {})) {
    writeFileSync(pathOf(`docs/diagrams/${name}.svg`), svg)
    images.push(`![The run over time](../diagrams/${name}.svg)\n`)
  }
  const results = [conditions(), ...images, table(figures)].join('\n')
  const text = readFileSync(path, 'utf8')
  if (!MARKED.test(text)) throw new Error(`${page} has no place for results`)
  writeFileSync(
    path,
    text.replace(MARKED, (_, begin, end) => `${begin}\n${results}\n${end}`),
  )
}

function conditions(): string {
  const date = new Date().toISOString().slice(0, 10)
  const command = ['npm run e2e --', ...process.argv.slice(2)].join(' ')
  return `\`${command}\`, ${date}, commit ${currentCommit()}, Node ${process.versions.node}, ${availableParallelism()} cores.\n`
}

/** Ends with `-dirty` if other files than the documentation, with results of earlier runs, differ from the commit. */
function currentCommit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const others = [':(top)', ':(top,exclude)docs']
  const changed = git('status', '--porcelain', '--untracked-files=no', '--', ...others)
  return `${git('rev-parse', '--short=8', 'HEAD')}${changed === '' ? '' : '-dirty'}`
}

function listed(figures: readonly Figure[]): string {
  const rows = figures.map(
    ({ figure, value, target, holds }) =>
      `| ${figure.trim()} | ${value.toLocaleString('en')} | ${target} | ${target === '' ? '' : holds ? 'yes' : '**no**'} |\n`,
  )
  return `| Figure | Value | Target | Holds |\n|---|--:|---|---|\n${rows.join('')}`
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}
