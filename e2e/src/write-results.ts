/** Writes the figures of a scenario as Markdown, and its plots as SVG, for the documentation. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Figure, Scenario } from './scenario.js'

export function saveResults(folder: string, scenario: Scenario, figures: readonly Figure[]): void {
  const { name } = scenario
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const date = new Date().toISOString().slice(0, 10)
  const origin = `\`npm run e2e -- ${name}\`, ${date}, commit ${commit}, Node ${process.versions.node}:`
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, `${name}.md`),
    `${origin}\n\n${scenario.table?.(figures) ?? listed(figures)}`,
  )
  for (const [plot, svg] of Object.entries(scenario.plots?.() ?? {})) {
    writeFileSync(join(folder, `${plot}.svg`), svg)
  }
}

function listed(figures: readonly Figure[]): string {
  const rows = figures.map(
    ({ figure, value, target, holds }) =>
      `| ${figure} | ${value.toLocaleString('en')} | ${target} | ${target === '' ? '' : holds ? 'yes' : '**no**'} |\n`,
  )
  return `| Figure | Value | Target | Holds |\n|---|--:|---|---|\n${rows.join('')}`
}
