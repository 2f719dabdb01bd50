// test-group: io, slow

/** axe findings on every page, light and dark, narrow and wide, and use by keyboard only. */
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { browserPath, openPage, startBrowser } from './browser.js'
import { type FakeFeed, startFakeFeed } from './fake-feed.js'

/** Evaluated in the page, because the complete axe result is several megabytes. */
const VIOLATIONS = `axe.run({ resultTypes: ['violations'], selectors: false }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`

const violationsIn = (page: Page) => page.evaluate(VIOLATIONS) as Promise<string[]>

describe.skipIf(browserPath === undefined)('dashboard accessibility', () => {
  let browser: Browser
  let feed: FakeFeed
  beforeAll(async () => {
    browser = await startBrowser()
    feed = await startFakeFeed({ decisionRate: 20, token: 'secret' })
    feed.fleet.setBreaker('openai', 'half-open')
    feed.fleet.setBreaker('anthropic', 'open')
    feed.fleet.setBreaker('mistral', 'isolated')
    feed.fleet.setStore('unreachable')
  })
  afterAll(async () => {
    await feed?.close()
    await browser?.close()
  })

  it.each([
    ['light', 390],
    ['light', 1440],
    ['dark', 390],
    ['dark', 1440],
  ] as const)('the page passes axe: %s, %d pixels', async (colorScheme, width) => {
    const { page, close } = await openPage(browser, feed.url, {
      colorScheme,
      viewport: { width, height: 900 },
      reducedMotion: 'reduce',
    })
    onTestFinished(close)
    await page.getByTestId('degraded').waitFor()
    await page.evaluate(axe.source)
    expect(await violationsIn(page)).toEqual([])
    await page.getByRole('link', { name: 'Guards' }).click()
    await page.locator('.gate').first().waitFor()
    expect(await violationsIn(page)).toEqual([])
    await page.getByRole('button', { name: 'Isolate …' }).click()
    await page.getByLabel('Admin token').waitFor()
    expect(await violationsIn(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Why' }).click()
    // New decisions move the list all the time, and click() waits until its target stays in place.
    await page.locator('.decision').first().dispatchEvent('click')
    expect(await violationsIn(page)).toEqual([])
    await page.getByRole('link', { name: 'Job queues' }).click()
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor()
    expect(await violationsIn(page)).toEqual([])
  })

  it('the page can be used with the keyboard alone', async () => {
    const { page, close } = await openPage(browser, feed.url)
    onTestFinished(close)
    await page.getByTestId('calls').waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main')
    // Through the tabs to the guards; the focus follows.
    await page.getByRole('link', { name: 'Guards' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('.gate').first().waitFor()
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('main')
    const opener = page.getByRole('button', { name: 'Reset …' })
    await opener.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    // The focus returns to the button that opened the dialog.
    expect(await opener.evaluate((each) => each === document.activeElement)).toBe(true)
  })
})
