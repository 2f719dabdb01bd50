import { renderHtml, renderText, SCENARIOS, type Simulation, simulate } from '@spillway/simulator'
import { beforeAll, describe, expect, it } from 'vitest'

let result: Simulation
let failed: Simulation
beforeAll(async () => {
  const burst = SCENARIOS.find(({ name }) => name === 'burst')!
  result = await simulate({ ...burst, title: 'A <b>bold</b> & "quoted" title' })
  // Without any limit.
  failed = await simulate(burst, { guard: { timeout: { callMs: '1s' } } })
})

describe('simulation report', () => {
  it('the report is one file that loads nothing from elsewhere', () => {
    const html = renderHtml(result)
    expect(html).not.toMatch(/\b(src|href)=|url\(|@import|https?:/)
  })

  it('the report has each chart with and without Spillway, and every check', () => {
    const html = renderHtml(result)
    const plots = html.match(/<svg class="chart"/g)?.length ?? 0
    expect(plots).toBeGreaterThanOrEqual(10)
    expect(plots % 2).toBe(0)
    for (const { says } of result.checks) expect(html).toContain(says)
    expect(html).not.toContain('NaN')
  })

  it('the report escapes text from scenarios', () => {
    expect(renderHtml(result)).toContain('A &lt;b&gt;bold&lt;/b&gt; &amp; &quot;quoted&quot; title')
  })

  it('the report states plainly that a check has failed', () => {
    expect(failed.passed).toBe(false)
    expect(renderHtml(failed)).toContain('Not all promises hold')
    expect(renderText(failed)).toContain('NOT all promises hold with Spillway.')
    expect(renderText(failed)).toMatch(/^✗ calls at once/m)
  })
})
