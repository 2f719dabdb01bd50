// test-group: io, slow

/** The page "Why", and the layout of all pages, in a real browser with a simulated feed. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { FORBIDDEN_PHRASES } from '../../../scripts/forbidden-phrases.mjs'
import type { Decision } from '../src/wire/decisions.js'
import type { Explanation } from '../src/wire/explain.js'
import { browserPath, openPage, startBrowser } from './browser.js'
import { type FakeFeedOptions, startFakeFeed } from './fake-feed.js'

const decision = (id: number, changes: Partial<Decision>): Decision => ({
  id,
  pod: 'pod-a',
  at: Date.now() - 1_000 + id,
  requestId: `request-${id}`,
  guard: 'openai',
  lane: 'gpt-4o',
  user: 'ann',
  priority: 'normal',
  code: 'OK',
  stage: 'call',
  scope: 'local',
  tookMs: 12,
  attempts: 1,
  why: 'the downstream answered',
  numbers: {},
  path: [{ stage: 'shed', attempt: 0, atMs: 0, verdict: 'passed', scope: 'local' }],
  traced: true,
  ...changes,
})

/** Abbreviations that the page wrote once. */
const UNCLEAR = /\/s on\b|p99 none|go on\b/i

describe.skipIf(browserPath === undefined)('dashboard page Why', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  async function open(hash: string, options: FakeFeedOptions = {}, width = 1440) {
    const feed = await startFakeFeed({ decisionRate: 0, ...options })
    onTestFinished(() => feed.close())
    const viewport = { width, height: 844 }
    const watched = await openPage(browser, `${feed.url}${hash}`, { viewport })
    onTestFinished(() => watched.close())
    await watched.page.locator('main .panel').first().waitFor()
    const show = (...records: Decision[]) => {
      feed.send('decisions', { seen: records.length, records })
    }
    return { feed, show, ...watched }
  }

  const detailOf = async (page: Page) =>
    (await page.getByTestId('why-detail').textContent({ timeout: 5_000 })) ?? ''

  it('failed answers are not green and show their HTTP status', async () => {
    const { page, show } = await open('#/why')
    show(
      decision(1, { code: 'OK', status: 200 }),
      decision(2, { code: 'FAILED', status: 503 }),
      decision(3, { code: 'REJECTED', status: 404 }),
      decision(4, { code: 'UNKNOWN_KEY', status: 401, guard: '', stage: 'request', path: [] }),
    )
    const rows = page.locator('.decision')
    await expect.poll(() => rows.count()).toBe(4)
    const codes = await page.locator('.decision-code').allInnerTexts()
    expect(codes).toEqual(['UNKNOWN_KEY 401', 'REJECTED 404', 'FAILED 503', 'OK'])
    const classes = await rows.evaluateAll((all) => all.map((each) => each.className))
    expect(classes.map((each) => each.includes('tone-good'))).toEqual([false, false, false, true])
    expect(await rows.first().innerText()).toContain('gateway')
    await page.locator('#filter-code').selectOption('failed')
    await expect.poll(() => rows.count()).toBe(2)
  })

  it('the explanation names the cause, and what was requested against what was left', async () => {
    const { page, show } = await open('#/why')
    const untilAt = new Date(2026, 0, 1, 14, 3, 22).getTime()
    show(
      decision(1, {
        code: 'VENDOR_LIMITED',
        stage: 'vendor-limit',
        requested: { unit: 'tokens', requested: 900, left: 120, limit: 1_000, untilAt },
      }),
    )
    await page.locator('.decision').click()
    expect(await page.getByTestId('requested').innerText()).toBe(
      'Requested 900 tokens, 120 of 1,000 left until 14:03:22.',
    )
    const guards = await open('#/guards/openai', { still: true })
    guards.feed.fleet.setBreaker('openai', 'open')
    guards.feed.send('guards', guards.feed.fleet.guards())
    await guards.page.getByTestId('cause').getByText('31 failures in a row').waitFor()
  })

  it('a fallback is linked to the call it replaced, with its user', async () => {
    const { page, show } = await open('#/why')
    const shared = { requestId: 'request-of-both', user: 'ann' }
    show(
      decision(1, { ...shared, code: 'FAILED', status: 503, why: 'the first one' }),
      decision(2, {
        ...shared,
        guard: 'anthropic',
        replaces: { guard: 'openai', lane: 'gpt-4o', code: 'FAILED', status: 503 },
      }),
    )
    await page.locator('.decision').first().click()
    const detail = await detailOf(page)
    expect(detail).toMatch(/in place ofopenai, lane gpt-4o: FAILED 503/)
    expect(detail).toMatch(/userann/)
    await page.locator('.same-request').getByRole('button', { name: 'FAILED 503' }).click()
    await page.getByTestId('why-detail').getByText('the first one').waitFor()
  })

  it('a request is found by its id, on the page or by asking all pods', async () => {
    const explanation: Explanation = {
      requestId: 'request-elsewhere',
      request: {
        pod: 'pod-z',
        at: Date.now(),
        tookMs: 3,
        status: 503,
        code: 'CIRCUIT_OPEN',
        vendorAttempts: [{ vendor: 'openai', attempts: 0 }],
      },
      decisions: [decision(77, { requestId: 'request-elsewhere', pod: 'pod-z', code: 'SHED' })],
      podsQueried: 2,
      podsAnswered: 2,
    }
    const { page, show } = await open('#/why', { explanation })
    show(decision(1, {}), decision(2, {}))
    const field = page.getByLabel('Request id')
    await field.fill('request-2')
    await expect.poll(() => page.locator('.decision').count()).toBe(1)
    await field.fill('request-elsewhere')
    await page.getByTestId('request-answer').getByText('503 CIRCUIT_OPEN').waitFor()
    await page.locator('.decision').filter({ hasText: 'SHED' }).click()
    expect(await detailOf(page)).toContain('request-elsewhere')
    expect(page.url()).toContain('request=request-elsewhere')
    const other = await open('#/why?request=no-such-request')
    await other.page.getByText('No pod knows a request with this id').waitFor()
  })

  it('on a phone, tapping a decision scrolls to its explanation', async () => {
    const { page, show } = await open('#/why', {}, 390)
    show(...Array.from({ length: 30 }, (_, index) => decision(index + 1, {})))
    await page.locator('.decision').nth(2).click()
    const top = () =>
      page.getByTestId('why-detail').evaluate((each) => each.getBoundingClientRect().top)
    await expect.poll(top).toBeLessThan(120)
    expect(await top()).toBeGreaterThanOrEqual(0)
    // With the arrow keys the list stays in view.
    await page.evaluate(() => scrollTo(0, 0))
    await page.getByRole('listbox').focus()
    await page.keyboard.press('ArrowDown')
    expect(await top()).toBeGreaterThan(300)
  })

  it('at 1440 pixels no code is clipped, and both panels begin at the same height', async () => {
    const { page, show } = await open('#/why', { demo: false })
    show(
      decision(1, { code: 'DEADLINE_EXCEEDED', stage: 'queue' }),
      decision(2, { code: 'STORE_UNAVAILABLE', stage: 'vendor-limit' }),
      decision(3, { code: 'UNSUPPORTED_MEDIA_TYPE', status: 415, guard: '' }),
    )
    await expect.poll(() => page.locator('.decision').count()).toBe(3)
    const clipped = await page
      .locator('.decision-code')
      .evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth).length)
    expect(clipped).toBe(0)
    const tops = await page
      .locator('.why .panel')
      .evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().top)))
    expect(tops[0]).toBe(tops[1])
  })

  it('idle lanes of a guard are collapsed, and no column of its panels is empty', async () => {
    const feedOptions = { lanes: 4, still: true, demo: false }
    const { page, feed } = await open('#/guards/openai', feedOptions)
    for (const lane of ['o3', 'embeddings']) feed.fleet.setIdle(lane)
    feed.send('guards', feed.fleet.guards())
    const idle = page.getByTestId('idle-lanes')
    await idle.getByText('2 idle lanes, closed').waitFor()
    expect(await page.locator('.breaker').count()).toBe(2)
    await idle.locator('summary').click()
    await idle.getByText('embeddings').waitFor()
    for (const width of [1440, 900]) {
      await page.setViewportSize({ width, height: 844 })
      const { columns, filled } = await page.locator('.stacks').evaluate((grid) => ({
        columns: getComputedStyle(grid).gridTemplateColumns.split(' ').length,
        filled: [...grid.children].map((each) => getComputedStyle(each).gridColumn),
      }))
      const isWhole = filled.length % columns === 0 || filled.at(-1) === '1 / -1'
      expect([width, isWhole]).toEqual([width, true])
    }
    // No heading of a stage runs into the next one.
    await page.setViewportSize({ width: 1440, height: 844 })
    const wide = await page
      .locator('.gate h3')
      .evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth).length)
    expect(wide).toBe(0)
  })

  it('on a phone the stages of a guard are below one another, with their figures', async () => {
    const { page } = await open('#/guards/openai', { still: true }, 390)
    const boxes = await page.locator('.gate').evaluateAll((all) =>
      all.map((each) => {
        const { left, top, width } = each.getBoundingClientRect()
        return { left, top, width }
      }),
    )
    expect(new Set(boxes.map(({ left }) => left)).size).toBe(1)
    expect(boxes.every(({ width }) => width > 300)).toBe(true)
    expect(boxes.every(({ top }, at) => at === 0 || top > (boxes[at - 1]?.top ?? 0))).toBe(true)
  })

  it('tiles and charts of the fleet show the same figures of all pods', async () => {
    const { page } = await open('#/fleet', { still: true, past: false })
    const tile = async (id: string) => (await page.getByTestId(id).innerText()).replace('/s', '')
    const legend = (label: string) =>
      page.locator('.legend-line').filter({ hasText: label }).locator('b').innerText()
    await expect.poll(() => legend('calls')).toBe(await tile('calls'))
    expect(await legend('refused')).toBe(await tile('refused'))
    expect(await legend('in flight')).toBe(await tile('in-flight'))
    expect(await legend('waiting')).toBe(await tile('waiting'))
  })

  it('no page has a text that the style guide forbids', async () => {
    const { page, feed } = await open('#/fleet', { decisionRate: 40 })
    const texts: string[] = []
    const read = async () => {
      texts.push(await page.locator('body').innerText())
      const labels = await page
        .locator('[aria-label], [title], [placeholder]')
        .evaluateAll((all) =>
          all.flatMap((each) =>
            ['aria-label', 'title', 'placeholder'].map((name) => each.getAttribute(name) ?? ''),
          ),
        )
      texts.push(labels.join('\n'))
    }
    feed.fleet.setBreaker('openai', 'half-open')
    await read()
    for (const name of ['Guards', 'Why', 'Job queues']) {
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
      if (name === 'Why') await page.locator('.decision').first().dispatchEvent('click')
      if (name === 'Guards') await page.locator('.gate').first().waitFor()
      await read()
    }
    await page.getByRole('button', { name: 'Pause' }).first().click()
    await read()
    await page.getByRole('link', { name: 'Guards' }).click()
    for (const action of ['Isolate …', 'Reset …', 'Pause vendor …', 'Change … requests']) {
      await page.getByRole('button', { name: action }).first().click()
      await page.getByRole('dialog').waitFor()
      await read()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
    for (const text of texts) {
      expect(text).not.toMatch(FORBIDDEN_PHRASES)
      expect(text).not.toMatch(UNCLEAR)
    }
  })
})
