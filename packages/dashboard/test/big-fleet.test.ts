// test-group: io, slow

/**
 * Fifty pods, twenty guards and five thousand decisions a second, all sent to the page. Frame rate
 * and memory depend on the machine and are measured by `npm run bench -- dashboard`.
 */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { browserPath, openPage, startBrowser } from './browser.js'
import { startFakeFeed } from './fake-feed.js'

const LOOK_MS = 2_000

describe.skipIf(browserPath === undefined)('page of a big fleet', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  it('the page of a big fleet is idle nearly half of the time, stays small and leaks nothing', async () => {
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
    const visit = async (hash: string) => {
      await page.goto(`${feed.url}${hash}`)
      await page.locator('.panel').first().waitFor()
    }
    for (const hash of ['#/fleet', '#/guards/openai', '#/why']) {
      await visit(hash)
      const before = await figures()
      const beganMs = performance.now()
      await page.waitForTimeout(LOOK_MS)
      const after = await figures()
      // CPU time of the page's thread, which does not depend on other processes.
      const seconds = (performance.now() - beganMs) / 1_000
      expect((after.cpuS - before.cpuS) / seconds, `busy at ${hash}`).toBeLessThan(0.6)
      expect(after.heap, `JavaScript's memory at ${hash}`).toBeLessThan(100e6)
      expect(after.nodes, `nodes at ${hash}`).toBeLessThan(20_000)
    }
    // The elements of the previous page are garbage collected.
    await visit('#/queues')
    await expect
      .poll(
        async () => {
          await session.send('HeapProfiler.collectGarbage')
          return (await figures()).nodes
        },
        { timeout: 60_000 },
      )
      .toBeLessThan(1_000)
    expect(complaints).toEqual([])
  })
})
