/** Fifty pods, twenty guards, five thousand decisions a second, all of them sent to the page. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { browserPath, openPage, startBrowser } from './browser.js'
import { startFakeFeed } from './fake-feed.js'

const MEASURE_MS = 2_500

/** In the page: frames drawn in so much time. */
function countFrames(ms: number): Promise<number> {
  return new Promise((resolve) => {
    let frames = 0
    const fromMs = performance.now()
    const next = (nowMs: number) => {
      frames++
      if (nowMs - fromMs >= ms) resolve(frames)
      else requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  })
}

describe.skipIf(browserPath === undefined)('a big fleet', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  it('is shown with over 30 frames a second in under 200 MB', async () => {
    const feed = await startFakeFeed({ pods: 50, guards: 20, decisionRate: 5_000, lanes: 4 })
    onTestFinished(() => feed.close())
    const { page, complaints, close } = await openPage(browser, feed.url)
    onTestFinished(close)
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    const figures = async () => {
      const { metrics } = await session.send('Performance.getMetrics')
      const named = Object.fromEntries(metrics.map(({ name, value }) => [name, value]))
      return {
        cpuS: named.TaskDuration ?? 0,
        heap: named.JSHeapUsedSize ?? 0,
        nodes: named.Nodes ?? 0,
      }
    }
    for (const hash of ['#/fleet', '#/guards/openai', '#/why']) {
      await page.goto(`${feed.url}${hash}`)
      await page.locator('.panel').first().waitFor()
      const before = await figures()
      const frames = await page.evaluate(countFrames, MEASURE_MS)
      const after = await figures()
      // How many frames there are in a second depends on who else wants the processor; how many there could
      // be, by the time the page's own thread was running, does not.
      const framesASecond = frames / (after.cpuS - before.cpuS)
      expect(framesASecond, `frames a second at ${hash}`).toBeGreaterThan(30)
      expect(after.heap, `memory at ${hash}`).toBeLessThan(200e6)
      expect(after.nodes, `nodes at ${hash}`).toBeLessThan(30_000)
    }
    expect(complaints).toEqual([])
  }, 60_000)
})
