import { renderHtml, renderText, SCENARIOS, type Simulation, simulate } from '@spillway/simulator'
import { beforeAll, describe, expect, it } from 'vitest'

let result: Simulation
let failed: Simulation
beforeAll(async () => {
  const burst = SCENARIOS.find(({ name }) => name === 'burst')!
  result = await simulate({ ...burst, title: 'A <b>bold</b> & "quoted" title' })
  // Nothing that would hold anybody back.
  failed = await simulate(burst, { guard: { timeout: { callMs: '1s' } } })
})

describe('the page', () => {
  it('is one file: nothing in it is loaded from elsewhere', () => {
    const html = renderHtml(result)
    expect(html).not.toMatch(/\b(src|href)=|url\(|@import|https?:/)
  })

  it('has each plot twice, with Spillway and without, and what was promised', () => {
    const html = renderHtml(result)
    const plots = html.match(/<svg class="chart"/g)?.length ?? 0
    expect(plots).toBeGreaterThanOrEqual(10)
    expect(plots % 2).toBe(0)
    for (const { says } of result.checks) expect(html).toContain(says)
    expect(html).not.toContain('NaN')
  })

  it('shows what others wrote as they wrote it', () => {
    expect(renderHtml(result)).toContain('A &lt;b&gt;bold&lt;/b&gt; &amp; &quot;quoted&quot; title')
  })

  it('says plainly when a promise was broken', () => {
    expect(failed.passed).toBe(false)
    expect(renderHtml(failed)).toContain('Not all promises hold')
    expect(renderText(failed)).toContain('NOT all promises hold with Spillway.')
    expect(renderText(failed)).toMatch(/^✗ calls at once/m)
  })
})
