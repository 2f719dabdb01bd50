/** The tables of docs/gateway/sdks.md. */
import { CASES } from './cases.mjs'
import { FAILURES } from './failures.mjs'

export function problemsOf({ results }) {
  return results.flatMap(({ name, outcomes }) =>
    Object.entries(outcomes)
      .filter(([, outcome]) => outcome.startsWith('failed'))
      .map(([caseName, outcome]) => `${name}: ${caseName}: ${outcome}`),
  )
}

export function withTables(page, report) {
  const parts = { results: resultsTable(report), retries: retriesTable(report) }
  let text = page
  for (const [name, table] of Object.entries(parts)) {
    const marked = new RegExp(`(<!-- begin ${name} -->\n).*?(<!-- end ${name} -->)`, 's')
    text = text.replace(marked, (_, begin, end) => `${begin}${table}${end}`)
  }
  return text
}

const SYMBOLS = { passed: 'yes', none: '–' }

function resultsTable({ node, results }) {
  const rows = results.map(({ name, outcomes }) => [
    name,
    ...Object.keys(CASES).map((each) => SYMBOLS[outcomes[each]] ?? 'no'),
  ])
  const versions = [...new Set(results.flatMap((each) => each.versions))].join(', ')
  return `${markdown(['Client', ...Object.keys(CASES)], rows)}\nMeasured with Node ${node} and ${versions}.\n`
}

function retriesTable({ results }) {
  const rows = results.map(({ name, retries, noRetries }) => [
    name,
    ...Object.keys(FAILURES).map((each) => shown(retries[each].default)),
    ...[Math.max(...Object.values(retries).map(({ off }) => off.made))],
    noRetries,
  ])
  const heads = ['Client', ...Object.keys(FAILURES), 'with the setting', 'Setting that stops it']
  return markdown(heads, rows)
}

/** A call that recovers by itself was worth its retries. */
function shown({ made, ended }) {
  if (ended === 'stopped') return `${made} and more`
  return ended === 'answered' ? `${made}, then answered` : String(made)
}

function markdown(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`
  return line(heads) + line(heads.map(() => '---')) + rows.map(line).join('')
}
