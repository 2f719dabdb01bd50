/** Style sheet of the report: light and dark, narrow and wide screens. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --ink: #1c1d1f; --soft: #5d6168; --hair: #e3e3df;
  --good: #1f6feb; --bad: #c2371f; --ok: #1a7f4b; --grey: #8b9097;
  --c1: #e0922f; --c2: #b04fc4; --c3: #2a9d8f; --c4: #d64545; --c5: #6b5bd6; --c6: #c65b9b; --c7: #7a8b3a; --c8: #6d737b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #141517; --card: #1d1f22; --ink: #ececea; --soft: #a3a8b0; --hair: #34373c;
    --good: #6ea8ff; --bad: #ff8a73; --ok: #5cc98d; --grey: #8d949e;
    --c1: #f0ae58; --c2: #d08be0; --c3: #5cc7ba; --c4: #f07a7a; --c5: #a298ff; --c6: #ea92c5; --c7: #b3c568; --c8: #9aa1aa;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
main { max-width: 1180px; margin: 0 auto; padding: 28px 20px 60px }
h1 { font-size: 26px; line-height: 1.25; margin: 4px 0 8px; text-wrap: balance }
h2 { font-size: 16px; margin: 0 }
.name { color: var(--soft); margin: 0; font-size: 13px }
.story { max-width: 74ch; margin: 0 0 18px }
.verdict { display: inline-block; font-weight: 600; padding: 3px 12px; border-radius: 99px; margin-bottom: 14px; border: 1.5px solid }
.verdict.holds { color: var(--ok) } .verdict.fails { color: var(--bad) }
section { background: var(--card); border: 1px solid var(--hair); border-radius: 10px; padding: 16px 18px; margin: 0 0 16px }
.hint { color: var(--soft); font-size: 13.5px; margin: 2px 0 10px; max-width: 84ch }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: 7px 14px 7px 0; border-top: 1px solid var(--hair); vertical-align: top }
thead th { border: 0; color: var(--soft); font-weight: 500; font-size: 13px }
td.figure { white-space: nowrap }
.mark { font-weight: 700; display: inline-block; width: 1.2em } .holds .mark { color: var(--ok) } .fails .mark { color: var(--bad) }
.promise { color: var(--soft); white-space: nowrap }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px }
figure { margin: 0; min-width: 0 } figcaption { font-size: 13px; color: var(--soft); margin-bottom: 4px; font-weight: 600 } figcaption span { font-weight: 400; margin-left: 6px }
svg.chart { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y }
.grid { stroke: var(--hair); stroke-width: 1 }
.tick { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .limit { stroke-dasharray: 5 4; stroke-width: 1.3 }
.cursor { stroke: var(--soft); stroke-width: 1; visibility: hidden } .pointed .cursor { visibility: visible }
${['good', 'grey', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8']
  .map(
    (colour) =>
      `.line.${colour} { stroke: var(--${colour}) } .area.${colour} { fill: var(--${colour}); fill-opacity: .85 } i.${colour} { background: var(--${colour}) }`,
  )
  .join('\n')}
.line.limit-colour { stroke: var(--bad) }
i.limit-colour { background: repeating-linear-gradient(90deg, var(--bad) 0 4px, transparent 4px 7px); height: 2px }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 10px 0 0; font-size: 13px; color: var(--soft) }
.legend i, .swatch { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin-right: 7px; vertical-align: middle }
.strip { display: flex; height: 22px; border-radius: 4px; overflow: hidden; background: var(--hair) }
.strip span { display: block; min-width: 1px }
.closed { background: var(--ok) } .open { background: var(--bad) } .half-open { background: var(--c1) }
.tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--page); border-radius: 6px; padding: 6px 9px; font-size: 12.5px; line-height: 1.45; font-variant-numeric: tabular-nums; white-space: nowrap; z-index: 2 }
footer { color: var(--soft); font-size: 13px; max-width: 84ch }
code { font-size: .94em }
@media (max-width: 720px) { .pair { grid-template-columns: 1fr } h1 { font-size: 22px } main { padding: 18px 12px 40px } section { padding: 14px 12px } .promise { white-space: normal } }
@media print { section { break-inside: avoid } }
`

/** Shows a cursor with values at the pointer. The page is complete without this script. */
export const SCRIPT = `
const tip = document.createElement('div')
tip.className = 'tip'
tip.hidden = true
document.body.append(tip)
for (const svg of document.querySelectorAll('svg.chart')) {
  const { lines, durationMs } = JSON.parse(svg.dataset.series)
  const [left, width] = [Number(svg.dataset.left), Number(svg.dataset.width)]
  const cursor = svg.querySelector('.cursor')
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect()
    const part = (((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width - left) / width
    if (part < 0 || part > 1 || lines.length === 0) return hide()
    const length = lines[0].values.length
    const at = Math.min(length - 1, Math.floor(part * length))
    cursor.setAttribute('x1', left + (width * (at + 0.5)) / length)
    cursor.setAttribute('x2', left + (width * (at + 0.5)) / length)
    const rows = lines.map(({ name, values }) => name + ': ' + (values[at] === null ? 'none' : values[at].toLocaleString('en-US')))
    tip.replaceChildren(...['at ' + ((durationMs * at) / length / 1000).toFixed(1) + ' s', ...rows].map((text) => {
      const row = document.createElement('div')
      row.textContent = text
      return row
    }))
    tip.hidden = false
    svg.classList.add('pointed')
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px'
    tip.style.top = event.clientY + 14 + 'px'
  })
  const hide = () => {
    tip.hidden = true
    svg.classList.remove('pointed')
  }
  svg.addEventListener('pointerleave', hide)
}
`
