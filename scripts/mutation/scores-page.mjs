// Writes the tables of docs/project/mutation-scores.md. Rows of files that did not run stay as they are.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../run-command.mjs'

const PAGE = join(root, 'docs/project/mutation-scores.md')
/** Files with fewer mutants have no score, because one mutant would change it by more than 10 %. */
const FEWEST_FOR_SCORE = 10

/** @param {{ files: Record<string, { mutants: { status: string }[] }> }} report of Stryker */
export function updateScores({ files }) {
  const rows = Object.entries(files).map(([file, { mutants }]) => {
    const count = (...statuses) => mutants.filter(({ status }) => statuses.includes(status)).length
    const timedOut = count('Timeout')
    const killed = count('Killed') + timedOut
    const missed = count('Survived', 'NoCoverage')
    const name = file.replace('packages/spillway/src/', '')
    return { name, killed, timedOut, total: killed + missed }
  })
  updateTable('typescript', rows)
}

/** @param {{ name: string, killed: number, timedOut?: number, total: number }[]} rows */
export function updateTable(table, rows) {
  const text = readFileSync(PAGE, 'utf8')
  const part = new RegExp(`(<!-- scores: ${table} -->\n).*?(<!-- end -->)`, 's')
  const kept = new Map(
    Array.from(part.exec(text)[0].matchAll(/^\| `(.+?)` .*\|$/gm), ([row, name]) => [name, row]),
  )
  const today = new Date().toISOString().slice(0, 10)
  for (const { name, killed, timedOut = 0, total } of rows) {
    const score = total < FEWEST_FOR_SCORE ? '–' : `${((100 * killed) / total).toFixed(1)} %`
    kept.set(
      name,
      `| \`${name}\` | ${total} | ${total - killed} | ${timedOut} | ${score} | ${today} |`,
    )
  }
  const head =
    '| File | mutants | survived | timed out | score | date |\n|---|---:|---:|---:|---:|---|'
  const body = [...kept].sort(([one], [other]) => one.localeCompare(other)).map(([, row]) => row)
  writeFileSync(
    PAGE,
    text.replace(part, (_, start, end) => `${start}\n${[head, ...body].join('\n')}\n\n${end}`),
  )
}
