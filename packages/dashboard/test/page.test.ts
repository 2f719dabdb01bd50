// test-group: io, slow

/** The page in a real browser with a simulated feed. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { browserPath, openPage, startBrowser } from './browser.js'
import { type FakeFeedOptions, startFakeFeed } from './fake-feed.js'

describe.skipIf(browserPath === undefined)('dashboard page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  async function open(hash = '', options: FakeFeedOptions = {}, context?: object) {
    const feed = await startFakeFeed(options)
    onTestFinished(() => feed.close())
    const watched = await openPage(browser, `${feed.url}${hash}`, context)
    onTestFinished(() => watched.close())
    return { feed, ...watched }
  }

  it('the page shows the fleet with moving figures and logs no error', async () => {
    const { page, complaints } = await open('', { pods: 4 })
    await page.getByTestId('pods-alive').getByText('4').waitFor()
    const calls = page.getByTestId('calls')
    const before = await calls.textContent()
    await expect.poll(() => calls.textContent()).not.toBe(before)
    for (const name of ['Guards', 'Why', 'Job queues', 'Fleet']) {
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
      await page.getByRole('heading', { level: 1 }).waitFor({ state: 'attached' })
    }
    expect(complaints).toEqual([])
  })

  it('the page lists the API keys of a guard and releases a quarantined one', async () => {
    const { page, feed, complaints } = await open('#/guards/openai')
    const keys = page.getByRole('region', { name: 'API keys' })
    const main = keys.locator('[data-key="main"]')
    await main.getByText(/quarantined for \d+ min/).waitFor()
    await main.getByText('quota exhausted').waitFor()
    await keys.locator('[data-key="batch"]').getByText('being tested').waitFor()
    expect(await keys.locator('[data-key="spare"] button').count()).toBe(0)
    await main.getByRole('button', { name: 'Release … main' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Release the key main of openai').waitFor()
    await dialog.getByRole('button', { name: 'Release' }).click()
    await dialog.getByTestId('act-answer').getByText('Done').waitFor()
    expect(feed.receivedActs.at(-1)?.act).toEqual({
      act: 'release-key',
      guard: 'openai',
      key: 'main',
    })
    expect(complaints).toEqual([])
  })

  it('the page shows the stages of a guard in order with their refusals', async () => {
    const { page, complaints } = await open('#/guards/openai')
    const gates = page.locator('.gate')
    await expect.poll(() => gates.count()).toBe(13)
    const stages = await gates.evaluateAll((all) =>
      all.map((each) => each.getAttribute('data-stage')),
    )
    expect(stages).toEqual([
      'shed',
      'user-limit',
      'queue',
      'breaker',
      'throttle',
      'vendor-limit',
      'pace',
      'concurrency',
      'timeout',
      'call',
      'retry',
      'hedge',
      'fallback',
    ])
    expect(await page.locator('[data-estimate="tokens"]').innerText()).toBe(
      'Estimates of tokens, this pod: lately 104 % of the actual cost; within 80 to 125 % for 93 % of 5,200 calls',
    )
    const limited = page.locator('[data-stage="vendor-limit"] .refusal')
    await limited.filter({ hasText: 'VENDOR' }).waitFor()
    await limited.click()
    // The link leads to these decisions.
    await expect.poll(() => page.locator('#filter-code').inputValue()).toBe('VENDOR_LIMITED')
    expect(complaints).toEqual([])
  })

  it('the page shows a breaker transition at once, before the next figures', async () => {
    const { page, feed } = await open('#/guards/openai', { still: true })
    await page.locator('.breaker').first().waitFor()
    feed.send('transition', feed.fleet.setBreaker('openai', 'open'))
    await page.locator('.page-head .badge').first().filter({ hasText: 'open' }).waitFor()
    // The next figures start a countdown to the probe, which needs no further data.
    feed.send('guards', feed.fleet.guards())
    const countdown = page.getByTestId('countdown')
    const first = await countdown.textContent()
    expect(first).toContain('until probes')
    await expect.poll(() => countdown.textContent()).not.toBe(first)
  })

  it('the page explains a decision with its path, numbers and remedy', async () => {
    const { page, complaints } = await open('#/why?code=refused')
    const list = page.getByRole('listbox', { name: 'Decisions' })
    await list.getByRole('option').first().waitFor()
    await list.focus()
    await page.keyboard.press('ArrowDown')
    const detail = page.getByTestId('why-detail')
    await detail.getByText('What would have admitted it').waitFor()
    const text = (await detail.textContent()) ?? ''
    expect(text).toContain('has used 60 of 60 requests')
    expect(text).toContain('A place comes free in 1.2 s')
    expect(text).toContain('shared by all pods; shared state 180 ms old')
    expect(text).toMatch(/Load shedding.*passed.*User limits.*refused.*not reached: queue/s)
    // The list stops while a decision is selected and continues on request.
    const first = await list.getByRole('option').first().textContent()
    await page.getByText(/[1-9]\d* newer decisions?/).waitFor()
    expect(await list.getByRole('option').first().textContent()).toBe(first)
    await page.getByRole('button', { name: 'Resume' }).click()
    await expect.poll(() => list.getByRole('option').first().textContent()).not.toBe(first)
    expect(complaints).toEqual([])
  })

  it('the page keeps few rows for many decisions', async () => {
    const { page } = await open('#/why', { decisionRate: 3_000 })
    const list = page.getByRole('listbox', { name: 'Decisions' })
    await expect
      .poll(() => list.getByRole('option').first().getAttribute('aria-setsize'))
      .toBe('3000')
    expect(await list.getByRole('option').count()).toBeLessThan(40)
  })

  it('an action needs a confirmation, states its effect and needs the right token', async () => {
    const { page, feed } = await open('#/guards/openai', { token: 'right' })
    await page.getByRole('button', { name: 'Isolate …' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('is refused with CIRCUIT_OPEN for 10 min, on all 3 pods').waitFor()
    expect(feed.receivedActs).toEqual([])
    await dialog.getByLabel('Admin token').fill('wrong')
    await dialog.getByRole('button', { name: 'Isolate' }).click()
    await dialog.getByText('Not done: The token is wrong.').waitFor()
    await dialog.getByLabel('Lane').selectOption('gpt-4o')
    await dialog.getByLabel('Duration in minutes').fill('3')
    await dialog.getByLabel('Admin token').fill('right')
    await dialog.getByRole('button', { name: 'Isolate' }).click()
    await dialog.getByText('Done: did isolate').waitFor()
    expect(feed.receivedActs.at(-1)).toEqual({
      act: { act: 'isolate', guard: 'openai', lane: 'gpt-4o', forMs: 180_000 },
      token: 'right',
    })
    await dialog.getByRole('button', { name: 'Close' }).click()
    // The token stays in memory, so the page does not prompt for it again.
    await page.getByRole('button', { name: 'Reset …' }).click()
    await dialog.getByRole('button', { name: 'Reset' }).waitFor()
    expect(await dialog.getByLabel('Admin token').count()).toBe(0)
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    )
    expect(kept).not.toContain('right')
  })

  it('every action has a dialog that states its effect and target', async () => {
    const { page, feed } = await open('#/guards/openai')
    const dialog = page.getByRole('dialog')
    const doIt = async (opener: string, words: RegExp, button: string) => {
      await page.getByRole('button', { name: opener }).first().click()
      await dialog.getByText(words).waitFor()
      await dialog.getByRole('button', { name: button }).click()
      await dialog.getByTestId('act-answer').getByText('Done').waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'hidden' })
    }
    await doIt('Pause vendor …', /No call to openai.* starts for 5 min/, 'Pause')
    await doIt(
      'Change … requests',
      /“requests” is 500 instead of 500 for 10 min/,
      'Change the limit',
    )
    await page.getByRole('link', { name: 'Fleet' }).click()
    await doIt('Drain pod-b', /pod-b stops taking requests.*2 other pods continue/, 'Drain')
    await page.getByRole('link', { name: 'Job queues' }).click()
    await doIt('Retry a7f3', /The job a7f3 returns to the end of the job queue/, 'Retry')
    await page.getByRole('switch', { name: 'Break the vendor' }).click()
    await page.getByRole('switch', { name: 'Break the vendor', checked: true }).waitFor()
    expect(feed.receivedActs.map(({ act }) => act)).toMatchObject([
      { act: 'pause', guard: 'openai', forMs: 300_000 },
      { act: 'limit', guard: 'openai', id: 'requests', limit: 500 },
      { act: 'drain', pod: 'pod-b' },
      { act: 'replay', id: 'a7f3' },
      { act: 'demo', broken: true },
    ])
  })

  it('the page shows waiting jobs per tenant and priority, estimates and the blocking breaker', async () => {
    const { page, feed, complaints } = await open('#/queues', { queues: 2 })
    const first = page.getByRole('region', { name: 'Queue queue-0' })
    const ann = first.locator('.tenants .meter').first()
    expect(await ann.innerText()).toMatch(/ann\s+118\s+2 critical, 30 high, 70 normal, 16 low/)
    await first.getByText('no tenant').waitFor()
    await first.getByText('and 4 more tenants with 9 jobs').waitFor()
    expect(await first.getByText('about').count()).toBe(0)
    const second = page.getByRole('region', { name: 'Queue queue-1' })
    await second.getByText('about 118').waitFor()
    await second.getByText('these are estimates').waitFor()
    await first.getByText('working', { exact: true }).waitFor()
    feed.send('transition', feed.fleet.setBreaker('openai', 'open'))
    await first.getByText('held: its breaker is open').waitFor()
    expect(complaints).toEqual([])
  })

  it('the page reloads dead letters that could not be read', async () => {
    const { page } = await open('#/queues', { unread: 1 })
    await page.getByText('Dead letters cannot be read now').waitFor()
    await page.getByRole('row', { name: /a7f3/ }).waitFor()
    expect(await page.getByText('Dead letters cannot be read now').count()).toBe(0)
  })

  it('the page shows a lost connection, marks its data as old and reconnects by itself', async () => {
    const { page, feed } = await open()
    await page.getByTestId('calls').waitFor()
    const by = { pod: 'pod-a', on: 'openai', ok: true, by: 'ann' } as const
    feed.send('act', { at: 1_000, act: 'isolate', did: 'isolated all lanes', ...by })
    feed.send('act', { at: 2_000, act: 'reset', did: 'closed all lanes', ...by })
    const lines = page.locator('.audit li bdi.name-full')
    await expect.poll(() => lines.allTextContents()).toHaveLength(2)
    feed.cut()
    await page.getByTestId('lost').getByText('Connection to the gateway lost').waitFor()
    expect(await page.locator('.is-stale .content').count()).toBe(1)
    feed.resume()
    await page.getByTestId('lost').waitFor({ state: 'detached' })
    await page.getByText('live', { exact: true }).waitFor()
    expect(await page.locator('.is-stale').count()).toBe(0)
    // Actions that are sent again after the reconnect are shown once.
    feed.send('act', { at: 3_000, act: 'pause', did: 'paused all lanes', ...by })
    await page.getByText('paused all lanes').waitFor()
    expect(await lines.allTextContents()).toEqual([
      'paused all lanes',
      'closed all lanes',
      'isolated all lanes',
    ])
  })

  it('the page shows degraded mode even while it is paused', async () => {
    const { page, feed } = await open()
    await page.getByText('Redis shared').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    const calls = await page.getByTestId('calls').textContent()
    feed.fleet.setStore('unreachable')
    const banner = page.getByTestId('degraded')
    await banner.getByText('Redis is not answering: degraded mode').waitFor()
    expect(await page.getByTestId('calls').textContent()).toBe(calls)
    feed.fleet.setStore('shared')
    await banner.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Resume' }).first().click()
    await expect.poll(() => page.getByTestId('calls').textContent()).not.toBe(calls)
  })

  it('the page explains that it is connecting, and what to do when there is no data', async () => {
    const silent = await open('', { silent: true })
    await silent.page.getByText('Connecting to the fleet …').waitFor()
    const { page } = await open('', { guards: 0, queues: 0, decisionRate: 0 })
    await page.getByText('No guard yet').waitFor()
    await page.getByRole('link', { name: 'Why' }).click()
    await page.getByText('No decision yet').waitFor()
    await page.getByRole('link', { name: 'Job queues' }).click()
    await page.getByText('No job queue').waitFor()
    const example = page.getByText('later: { vendor: openai, model: gpt-4o-mini }')
    await expect.poll(() => example.isVisible()).toBe(true)
  })

  it('the page prompts for the token when reading needs it, and again after a wrong one', async () => {
    const { page } = await open('', { token: 'right', locked: true })
    const field = page.getByLabel('Admin token')
    await page.getByText('locked', { exact: true }).waitFor()
    expect(await page.getByText('The token is wrong').count()).toBe(0)
    // The input has the focus.
    await expect.poll(() => field.evaluate((each) => each === document.activeElement)).toBe(true)
    await field.fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByText('The token is wrong').waitFor()
    await field.fill('right')
    await page.getByRole('button', { name: 'Show the fleet' }).click()
    await page.getByTestId('calls').waitFor()
    // The token is now known for actions as well.
    await page.getByRole('link', { name: 'Guards' }).click()
    await page.getByRole('button', { name: 'Reset …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).waitFor()
    expect(await page.getByRole('dialog').getByLabel('Admin token').count()).toBe(0)
  })

  it('the page explains why it cannot be read from here when no token would help', async () => {
    const { page } = await open('', { barred: 'no admin token is set: <b>set one</b>' })
    const heading = page.getByRole('heading', { name: 'No access from here' })
    await page.getByText('no admin token is set: <b>set one</b>').waitFor()
    expect(await heading.isVisible()).toBe(true)
    await page.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => heading.isVisible()).toBe(true)
  })

  it('the page shows that access was withdrawn, hides old data and accepts a valid token', async () => {
    const { page, feed } = await open('', { token: 'right' })
    await page.getByTestId('calls').waitFor()
    feed.bar('unknown host name "fleet.example"')
    await page.getByRole('heading', { name: 'Access was withdrawn' }).waitFor()
    await page.getByText('Reason: unknown host name').waitFor()
    expect(await page.locator('.panel, .kpi').count()).toBe(0)
    await page.getByRole('button', { name: 'Enter a token …' }).click()
    await page.getByLabel('Admin token').fill('right')
    await page.keyboard.press('Enter')
    await page.getByTestId('calls').waitFor()
    await page.getByText('live', { exact: true }).waitFor()
  })

  it('the page has no animation with reduced motion', async () => {
    const { page } = await open('#/guards/openai', {}, { reducedMotion: 'reduce' })
    await page.locator('.gate').first().waitFor()
    const moving = await page.evaluate(
      () => document.getAnimations().filter((each) => each.playState === 'running').length,
    )
    expect(moving).toBe(0)
  })
})
