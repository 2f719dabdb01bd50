// test-group: io

/** Names come from users: text of any script and length, and never markup. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { browserPath, openPage, startBrowser } from './browser.js'
import { startFakeFeed } from './fake-feed.js'

const MARKUP = '<script>alert(1)</script><img src=x onerror=alert(2)>'
const RIGHT_TO_LEFT = 'מגן \u202Eevil\u202C ספק'
const LONG = 'w'.repeat(200)

describe.skipIf(browserPath === undefined)('names on the page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  it.each([360, 1280])('names are text and fit at %d pixels', async (width) => {
    const feed = await startFakeFeed({ names: [MARKUP, RIGHT_TO_LEFT, LONG], decisionRate: 20 })
    onTestFinished(() => feed.close())
    const { page, complaints, close } = await openPage(browser, feed.url, {
      viewport: { width, height: 800 },
    })
    onTestFinished(close)
    await page.getByTestId('calls').waitFor()
    for (const hash of ['#/fleet', `#/guards/${encodeURIComponent(LONG)}`, '#/why', '#/queues']) {
      await page.goto(`${feed.url}${hash}`)
      await page.locator('.panel').first().waitFor()
      // New decisions move the list all the time, and click() waits until its target stays in place.
      if (hash === '#/why') await page.locator('.decision').first().dispatchEvent('click')
      // Wide content scrolls within its own element.
      const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      expect(tooWide, hash).toBeLessThanOrEqual(0)
    }
    // Tenants choose their names, so they may contain HTML.
    for (const [place, name] of [MARKUP, RIGHT_TO_LEFT, LONG].entries()) {
      const label = page.locator('.tenants .meter-label').nth(place)
      expect(await label.textContent()).toBe(name)
      expect(await label.evaluate((each) => getComputedStyle(each).unicodeBidi)).toBe('isolate')
    }
    await page.goto(`${feed.url}#/fleet`)
    await page.getByText(MARKUP).first().waitFor()
    expect(await page.locator('#app script, #app img').count()).toBe(0)
    // Each name is isolated, so its direction does not affect the text after it.
    const isolated = await page
      .getByText(RIGHT_TO_LEFT)
      // List options are isolated by the browser.
      .evaluateAll((all) =>
        all
          .filter((each) => each.tagName !== 'OPTION')
          .map((each) => getComputedStyle(each).unicodeBidi),
      )
    expect(isolated.length).toBeGreaterThan(0)
    for (const each of isolated) expect(each).toContain('isolate')
    // In a dialog as well.
    await page.goto(`${feed.url}#/guards/${encodeURIComponent(MARKUP)}`)
    await page.getByRole('button', { name: 'Isolate …' }).click()
    await page.getByRole('dialog').getByText(`Isolate ${MARKUP}`).waitFor()
    expect(complaints).toEqual([])
  })
})
