/**
 * The tables and plots of the comparison, by scenario. The file in `scenarios/` with the same name measures the rows.
 * This file imports no package, so that a test can compare the page with it.
 */
const PODS = [1, 2, 4, 8]
const podsText = (pods) => (pods === 1 ? '1 pod' : `${pods} pods`)

export const TABLES = [
  {
    id: 'limit-replicas',
    columns: [
      { key: 'name', head: 'Package' },
      ...PODS.map((pods) => ({ key: `worst${pods}`, head: `worst second, ${podsText(pods)}` })),
      ...PODS.map((pods) => ({
        key: `used${pods}`,
        head: `limit used, ${podsText(pods)}`,
        unit: '%',
      })),
    ],
    plot: {
      title: 'Requests at the vendor in the worst second; the limit is 50',
      bars: PODS.map((pods) => ({ key: `worst${pods}`, label: podsText(pods) })),
      line: { value: 50, label: 'limit' },
    },
  },
  {
    id: 'breaker-processes',
    columns: [
      { key: 'name', head: 'Package' },
      { key: 'rule', head: 'Opens after' },
      { key: 'calls', head: 'calls of the other 7 pods to the dead downstream' },
      { key: 'untilMs', head: 'until the last of them', unit: ' ms' },
      { key: 'first', head: 'calls of the first pod' },
    ],
    plot: {
      title: 'Calls that seven pods send to a downstream that another pod has seen fail',
      label: ({ name, rule }) => `${name}, ${rule}`,
      bars: [{ key: 'calls' }],
    },
  },
  {
    id: 'redis-hung',
    columns: [
      { key: 'name', head: 'Package' },
      { key: 'rule', head: 'Limit' },
      { key: 'hung', head: 'calls over 1 s', unit: '%' },
      { key: 'longest', head: 'longest call', unit: ' s' },
      { key: 'answered', head: 'answered while Redis hung', unit: '%' },
      { key: 'refused', head: 'refused', unit: '%' },
      { key: 'failed', head: 'failed', unit: '%' },
      { key: 'worst', head: 'worst window of the busy limit', unit: '%' },
    ],
    plot: {
      title: 'Redis hangs for 5 s',
      label: ({ name, rule }) => `${name}, ${rule}`,
      bars: [
        { key: 'hung', label: 'calls over 1 s (%)' },
        { key: 'worst', label: 'worst window (% of limit)' },
      ],
      line: { value: 100, label: 'limit' },
    },
  },
  {
    id: 'aborted-streams',
    columns: [
      { key: 'name', head: 'Package' },
      { key: 'around', head: 'Limiter around' },
      { key: 'open', head: 'streams at once (limit 10)' },
      { key: 'afterAbort', head: 'free slots after aborts' },
      { key: 'afterSilence', head: 'free slots after readers stopped' },
    ],
    plot: {
      title: 'Streams at once, and slots that are free after the readers stopped',
      label: ({ name, around }) => `${name}, around ${around}`,
      bars: [
        { key: 'open', label: 'streams at once' },
        { key: 'afterSilence', label: 'free slots' },
      ],
      line: { value: 10, label: 'limit' },
    },
  },
  {
    id: 'retry-storm',
    columns: [
      { key: 'name', head: 'Package' },
      { key: 'first', head: 'requests at C for the first client request' },
      { key: 'mean', head: 'per client request, mean of 50' },
    ],
    plot: {
      title: 'Requests at a dead service for each client request',
      bars: [
        { key: 'first', label: 'first request' },
        { key: 'mean', label: 'mean of 50' },
      ],
    },
  },
  {
    id: 'overload-goodput',
    columns: [
      { key: 'name', head: 'Package' },
      { key: 'goodput', head: 'answered in time (capacity 200)', unit: '/s' },
      { key: 'median', head: 'median of these', unit: ' ms' },
      { key: 'refusedMs', head: 'median wait for a refusal', unit: ' ms' },
      { key: 'wasted', head: 'requests sent and not answered in time', unit: '%' },
    ],
    plot: {
      title: 'Requests answered within 500 ms, per second, at twice the capacity',
      bars: [{ key: 'goodput' }],
      line: { value: 200, label: 'capacity' },
    },
  },
  {
    id: 'cost',
    columns: [
      { key: 'name', head: 'Package' },
      { key: 'does', head: 'Used for' },
      { key: 'perCall', head: 'elapsed time of one call in sequence', unit: ' µs' },
      { key: 'importMs', head: 'time to import', unit: ' ms' },
      { key: 'packages', head: 'packages installed' },
      { key: 'kB', head: 'installed size', unit: ' kB' },
    ],
  },
]

function markdownTable({ columns }, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`
  const cell = (value, unit = '') =>
    typeof value === 'number' ? `${value.toLocaleString('en-US')}${unit}` : value
  const cells = rows.map((row) => columns.map(({ key, unit }) => cell(row[key], unit)))
  return (
    line(columns.map(({ head }) => head)) +
    line(columns.map(() => '---')) +
    cells.map(line).join('')
  )
}

/** The table, and when it was measured: a busy machine delays calls and arrivals. */
export function tableText(table, { commit, load, rows }) {
  return `${markdownTable(table, rows)}
Library of commit ${commit}; load average ${load} when it began.
`
}

/** Versions with which the scenarios were measured. They differ if a scenario was measured alone. */
export function conditions(scenarios) {
  const idsByText = {}
  for (const [id, scenario] of Object.entries(scenarios)) {
    const text = conditionsText(scenario)
    idsByText[text] = [...(idsByText[text] ?? []), id]
  }
  const groups = Object.entries(idsByText)
  if (groups.length === 1) return groups[0][0]
  return groups.map(([text, ids]) => `${ids.join(', ')}: ${text}`).join('\n')
}

function conditionsText({ date, node, redis, cores, versions }) {
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return `Measured on ${date} with Node ${node} and Redis ${redis}, on ${cores} cores. Packages: ${packages.join(', ')}.
`
}

/** The page with the tables of these results between its marks. */
export function withResults(page, results) {
  const parts = { conditions: conditions(results.scenarios) }
  for (const table of TABLES) parts[table.id] = tableText(table, results.scenarios[table.id])
  let text = page
  for (const [name, part] of Object.entries(parts)) {
    const marked = new RegExp(`(<!-- begin ${name} -->\n).*?(<!-- end ${name} -->)`, 's')
    text = text.replace(marked, (_, begin, end) => `${begin}${part}${end}`)
  }
  return text
}
