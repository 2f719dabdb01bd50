// test-group: io, slow

import axe from 'axe-core'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SECTIONS } from '../../docs/.vitepress/sidebar.mjs'
import { findBrowser } from '../ensure-browser.mjs'
import { buildSite, SITE_FOLDER } from './build-site.mjs'
import { SITE_BASE, serveSite } from './serve-site.mjs'
import { linkProblems, readSite } from './site-links.mjs'

/** The start page and the first page of each section. */
const FIRST_PAGES = ['', ...SECTIONS.map(({ folder }) => `${folder}/`)]
const VIOLATIONS = `axe.run({ resultTypes: ['violations'], selectors: false }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`

let site
beforeAll(async () => {
  const { code, output } = await buildSite()
  expect(code, output).toBe(0)
  site = await serveSite()
})
afterAll(() => site?.close())

it('every page of the site answers, and every link and anchor on it leads somewhere', async () => {
  const pages = readSite(SITE_FOLDER, SITE_BASE)
  expect(pages.size).toBeGreaterThan(70)
  expect(linkProblems(pages)).toEqual([])
  const answers = await Promise.all(
    [...pages.keys()].map(async (path) => [path, (await fetch(site.origin + path)).status]),
  )
  expect(answers.filter(([, status]) => status !== 200)).toEqual([])
})

const browserPath = findBrowser()
describe.skipIf(browserPath === undefined)('the site in a browser', () => {
  let browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] })
  })
  afterAll(() => browser?.close())

  // axe looks at each theme and each width once, because it takes most of the time.
  it.each([
    ['light', 390, false],
    ['light', 1440, true],
    ['dark', 390, true],
    ['dark', 1440, false],
  ])('first pages load and fit (%s, %d pixels, axe: %s)', async (colorScheme, width, isAxe) => {
    const context = await browser.newContext({
      colorScheme,
      viewport: { width, height: 900 },
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    const errors = []
    page.on('pageerror', ({ message }) => errors.push(message))
    page.on('response', (response) => {
      if (response.status() >= 400) errors.push(`${response.status()} ${response.url()}`)
    })
    const found = []
    for (const path of FIRST_PAGES) {
      await page.goto(site.origin + SITE_BASE + path)
      await page.locator('h1, .VPHero').first().waitFor()
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      const beyond = await page.evaluate(overflow)
      if (beyond > 0) found.push(`${path}: ${beyond} pixels wider than the window`)
      if (!isAxe) continue
      await page.evaluate(axe.source)
      found.push(...(await page.evaluate(VIOLATIONS)).map((each) => `${path}: ${each}`))
    }
    await context.close()
    expect([...errors, ...found]).toEqual([])
  })

  it('the search of the site finds a page by an error code', async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    await page.goto(`${site.origin}${SITE_BASE}start/`)
    await page.getByRole('button', { name: 'Search' }).first().click()
    await page.getByRole('searchbox').fill('QUEUE_TIMEOUT')
    await page.locator('.result').first().waitFor()
    expect(await page.locator('.result').count()).toBeGreaterThan(1)
    await page.close()
  })
})
