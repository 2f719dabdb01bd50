/** Renders a simulation as one self-contained page: no network, no fonts, no other file. */
import type { RunSummary } from '../measure/summary.js'
import type { CheckResult, Simulation } from '../run/simulate.js'
import { breakerStrip } from './breaker-strip.js'
import { chart, type Line, timeLabel, topOf } from './chart.js'
import {
  escapeHtml,
  formatCount,
  formatMetric,
  formatMs,
  formatPromise,
  formatShare,
} from './format.js'
import { type Row, rowsOf } from './rows.js'
import { SCRIPT, STYLE } from './style.js'

/** Renders a simulation as one HTML page. */
export function renderHtml(simulation: Simulation): string {
  const { name, title, story, seed, pods, durationMs, passed, spillway } = simulation
  const verdict = passed ? 'holds' : 'fails'
  const words = passed ? 'All promises hold with Spillway' : 'Not all promises hold'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(name)}: ${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<p class="name">Simulation <code>${escapeHtml(name)}</code>, ${formatCount(pods)} ${pods === 1 ? 'pod' : 'pods'}, ${timeLabel(durationMs, durationMs)} of virtual time, seed ${seed}</p>
<h1>${escapeHtml(title)}</h1>
<p class="story">${escapeHtml(story)}</p>
<p class="verdict ${verdict}">${words}</p>
${promises(simulation.checks)}
${totals(simulation)}
${breakerStrip(spillway, durationMs)}
${rowsOf(simulation)
  .map((row) => rowSection(row, simulation))
  .join('\n')}
<footer><p>Both columns saw the same requests at the same moments, and the same trouble. “With Spillway” ran the real guards of the library in virtual time; “without” is what is usually written first: a timeout and retries around each call. The same seed gives the same page, to the last digit: <code>spillway simulate ${escapeHtml(name)} --seed ${seed}</code>.</p></footer>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`
}

function promises(checks: readonly CheckResult[]): string {
  const rows = checks.map((check) => {
    const { says, metric, spillway, naive } = check
    return `<tr><td>${escapeHtml(says)}</td>${figure(metric, spillway)}${figure(metric, naive)}<td class="promise">${formatPromise(check)}</td></tr>`
  })
  return `<section><h2>What was promised</h2><div class="scroll"><table>
<thead><tr><th>promise</th><th>with Spillway</th><th>without</th><th>required</th></tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}

function figure(
  metric: CheckResult['metric'],
  { value, holds }: { value: number; holds: boolean },
): string {
  const mark = holds ? '✓' : '✗'
  return `<td class="figure ${holds ? 'holds' : 'fails'}"><span class="mark">${mark}</span>${formatMetric(metric, value)}</td>`
}

function totals({ spillway, naive }: Simulation): string {
  const runs = [spillway.totals, naive.totals]
  const row = (what: string, of: (totals: (typeof runs)[number]) => string) =>
    `<tr><td>${what}</td>${runs.map((each) => `<td class="figure">${of(each)}</td>`).join('')}</tr>`
  const refused = (totals: (typeof runs)[number]) =>
    formatCount(Object.values(totals.refused).reduce((sum, each) => sum + each, 0))
  const time = (ms: number | null) => (ms === null ? 'none' : formatMs(ms))
  return `<section><h2>In numbers</h2><div class="scroll"><table>
<thead><tr><th></th><th>with Spillway</th><th>without</th></tr></thead><tbody>
${row('requests', ({ requests }) => formatCount(requests))}
${row('served in time', ({ served, requests }) => `${formatCount(served)} (${formatShare(served / requests)})`)}
${row('refusals by Spillway, including repeated requests', refused)}
${row('failed, or too late, each time', ({ failed }) => formatCount(failed))}
${row('calls at the vendor', ({ vendorCalls }) => formatCount(vendorCalls))}
${row('answers of 429', ({ throttled }) => formatCount(throttled))}
${row('time to a good answer, median and 99th percentile', ({ p50Ms, p99Ms }) => `${time(p50Ms)}, ${time(p99Ms)}`)}
${row('commands at the store', ({ storeCommands }) => formatCount(storeCommands))}
</tbody></table></div></section>`
}

/** Values of the run without Spillway above this multiple are cut off, so that the other run stays readable. */
const FARTHEST = 6

function rowSection({ title, hint, lines, format, caption }: Row, simulation: Simulation): string {
  const { spillway, naive } = simulation
  const [ours, theirs] = [lines(spillway), lines(naive)]
  const [ourTop, theirTop] = [topOf(ours), topOf(theirs)]
  const top = ourTop > 0 ? Math.min(Math.max(ourTop, theirTop), ourTop * FARTHEST) : theirTop
  const { durationMs } = simulation
  const half = (name: string, run: RunSummary, each: Line[]) => {
    const most = topOf(each.filter(({ dashed }) => !dashed))
    const beyond = most > top ? ', beyond this scale' : ''
    const says = caption?.(run) ?? `up to ${format(most)}${beyond}`
    const label = `${title}, ${name}`
    return `<figure><figcaption>${name} <span>${says}</span></figcaption>${chart({ lines: each, durationMs, top, format, label })}</figure>`
  }
  return `<section><h2>${title}</h2><p class="hint">${hint}</p>
<div class="pair">${half('with Spillway', spillway, ours)}${half('without', naive, theirs)}</div>${legend([...ours, ...theirs])}</section>`
}

function legend(lines: readonly Line[]): string {
  const names = new Map(lines.map(({ name, colour }) => [name, colour]))
  const items = Array.from(names, ([name, colour]) => `<li><i class="${colour}"></i>${name}</li>`)
  return items.length === 0 ? '' : `<ul class="legend">${items.join('')}</ul>`
}
