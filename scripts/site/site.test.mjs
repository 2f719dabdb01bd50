// test-group: io, slow

import axe from 'axe-core'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SECTIONS } from '../../docs/.vitepress/sidebar.mjs'
import { SpillwayError } from '../../packages/spillway/dist/index.js'
import { usualOrLong } from '../../packages/spillway/test/long-run.js'
import { findBrowser } from '../ensure-browser.mjs'
import { errorCodes } from '../reference/build-reference.mjs'
import { buildSite, SITE_FOLDER } from './build-site.mjs'
import { SITE_BASE, serveSite } from './serve-site.mjs'
import { linkProblems, readSite } from './site-links.mjs'

/** The start page and the first page of each section. */
const FIRST_PAGES = ['', ...SECTIONS.map(({ folder }) => `${folder}/`)]
/** Generated pages with wide tables. */
const WIDE_PAGES = ['options', 'gateway-options', 'error-codes', 'events'].map(
  (page) => `reference/${page}`,
)
const API = `${SITE_BASE}reference/api/`
const VIOLATIONS = `axe.run({ resultTypes: ['violations'], selectors: false }).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`

let site
let folder
let hasApi
beforeAll(async () => {
  // `npm run check -- site` looks at the links of the TypeScript API as well.
  const built = await buildSite({ api: usualOrLong(false, true) })
  expect(built.code, built.output).toBe(0)
  folder = built.folder
  hasApi = folder === SITE_FOLDER
  site = await serveSite(folder)
})
afterAll(() => site?.close())

it('every page of the site answers, and every link and anchor on it leads somewhere', async () => {
  const pages = readSite(folder, SITE_BASE)
  expect(pages.size).toBeGreaterThan(hasApi ? 90 : 70)
  const isBroken = (problem) => hasApi || !problem.includes(`: no page ${API}`)
  expect(linkProblems(pages).filter(isBroken)).toEqual([])
  const answers = await Promise.all(
    [...pages.keys()].map(async (path) => [path, (await fetch(site.origin + path)).status]),
  )
  expect(answers.filter(([, status]) => status !== 200)).toEqual([])
})

it('the URL of every error code leads to a heading of the site', () => {
  const pages = readSite(folder, SITE_BASE)
  const codes = errorCodes([]).map(({ code }) => code)
  const missing = codes.filter((code) => {
    const explain = () => ''
    const { url } = new SpillwayError({ code, stage: 'call', scope: 'local', explain }).toJSON()
    const { pathname, hash } = new URL(url)
    return pages.get(pathname)?.ids.has(hash.slice(1)) !== true
  })
  expect(codes.length).toBeGreaterThan(10)
  expect(missing).toEqual([])
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
    ['light', 1440, 390],
    ['dark', 390, 1440],
  ])(
    'first pages load without error and fit at 390 and 1440 pixels (%s, axe at %d)',
    async (colorScheme, axeWidth, otherWidth) => {
      const viewport = { width: axeWidth, height: 900 }
      const context = await browser.newContext({ colorScheme, viewport, reducedMotion: 'reduce' })
      const page = await context.newPage()
      const errors = []
      page.on('pageerror', ({ message }) => errors.push(message))
      page.on('response', (response) => {
        if (response.status() >= 400) errors.push(`${response.status()} ${response.url()}`)
      })
      const found = []
      const widePages = hasApi ? [...WIDE_PAGES, 'reference/api/spillway'] : WIDE_PAGES
      for (const path of [...FIRST_PAGES, ...widePages]) {
        await page.setViewportSize(viewport)
        await page.goto(site.origin + SITE_BASE + path)
        await page.locator('h1, .VPHero').first().waitFor()
        for (const width of [axeWidth, otherWidth]) {
          await page.setViewportSize({ width, height: 900 })
          const overflow =
            'document.documentElement.scrollWidth - document.documentElement.clientWidth'
          const beyond = await page.evaluate(overflow)
          if (beyond > 0) found.push(`${path}: ${beyond} pixels wider than the window of ${width}`)
          if (width !== axeWidth || widePages.includes(path)) continue
          await page.evaluate(axe.source)
          found.push(...(await page.evaluate(VIOLATIONS)).map((each) => `${path}: ${each}`))
        }
      }
      await context.close()
      expect([...errors, ...found]).toEqual([])
    },
  )

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
