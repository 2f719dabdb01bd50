// test-group: io, slow

/** The page as operators use it: two gateway processes, one Redis and a real browser. */

import { createMockVendor, type MockVendor } from '@spillway/mock-vendor'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spawnGateway } from '../../gateway/test/gateway-process.js'
import { freePort, type RedisServer, startRedis } from '../../spillway/test/redis-server.js'
import { browserPath, openPage, startBrowser, type WatchedPage } from './browser.js'

const TOKEN = 'a-token-for-the-operators'
const VENDOR_KEY = 'sk-must-stay-secret'
const MARKUP_USER = '<script>alert(1)</script>'
type Gateway = Awaited<ReturnType<typeof spawnGateway>>

describe.skipIf(browserPath === undefined)('dashboard of two gateways', () => {
  let redis: RedisServer
  let vendor: MockVendor
  let browser: Browser
  let options: Parameters<typeof spawnGateway>[0]
  let [one, two]: Gateway[] = []
  let ports: { port: number; adminPort: number }
  let [onOne, onTwo]: WatchedPage[] = []

  beforeAll(async () => {
    redis = await startRedis()
    vendor = createMockVendor({ knobs: { tokens: 1 } })
    const { url } = await vendor.start()
    const config = {
      admin: { token: 'env:ADMIN_TOKEN' },
      // With browsers on the same machine Redis may be slow without being unreachable.
      redis: { url: redis.url, commandTimeoutMs: '2s' },
      vendors: {
        openai: {
          protocol: 'openai',
          url,
          key: 'env:VENDOR_KEY',
          breaker: { consecutiveFailures: 4, openMs: '1m' },
          limits: [{ limit: 5_000, windowMs: '1m' }],
          concurrency: { limit: 50 },
        },
      },
    }
    const env = { ADMIN_TOKEN: TOKEN, VENDOR_KEY }
    options = { config, env }
    ports = { port: await freePort(), adminPort: await freePort() }
    ;[browser, one, two] = await Promise.all([
      startBrowser(),
      spawnGateway({ ...options, ports }),
      spawnGateway(options),
    ])
    onOne = await openPage(browser, `${one.adminUrl}/dashboard/`)
    onTwo = await openPage(browser, `${two.adminUrl}/dashboard/#/guards/openai`)
    for (const { page } of [onOne, onTwo]) await show(page, TOKEN)
  })
  afterAll(async () => {
    await Promise.all([browser?.close(), one?.stop(), two?.stop(), vendor?.close()])
    await redis?.stop()
  })

  /** Browsers log every failed connection, and the 401 before the token is entered. */
  const isReal = (complaint: string) => !/net::ERR_|401/.test(complaint)
  /** Enters the token on the login form. */
  const show = async (page: Page, token: string) => {
    await page.getByLabel('Admin token').fill(token)
    await page.getByRole('button', { name: 'Show the fleet' }).click()
  }
  const call = (gateway: Gateway | undefined, user = 'ann') =>
    fetch(`${gateway?.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'spillway-user': encodeURI(user) },
      body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'psst' }] }),
    })
  const breakerOn = (page: Page) => page.locator('.guard-main .page-head .badge').first()
  const until = (page: Page, state: string) =>
    breakerOn(page).getByText(state, { exact: true }).waitFor()
  const act = async (page: Page, button: string) => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: `${button} …` }).click()
    await dialog.getByRole('button', { name: button }).click()
    return (await dialog.getByTestId('act-answer').textContent()) ?? ''
  }

  const close = async (page: Page) => {
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  }

  it('the page loads, lists both pods and updates its figures', async () => {
    const { page, complaints } = onOne as WatchedPage
    await expect.poll(() => page.getByTestId('pods-alive').textContent()).toBe('2')
    const calls = page.getByTestId('calls')
    expect(await calls.textContent()).toBe('0/s')
    const answers = await Promise.all(Array.from({ length: 40 }, () => call(one)))
    const refused = answers.filter(({ status }) => status !== 200)
    expect(await Promise.all(refused.map((each) => each.text()))).toEqual([])
    // A busy browser may draw only one of several seconds.
    const shown = async () => {
      await call(one)
      return calls.textContent()
    }
    await expect.poll(shown).not.toBe('0/s')
    expect(complaints.filter(isReal)).toEqual([])
  })

  it('the page of one pod shows within a second a breaker opened by the other', async () => {
    const { page } = onTwo as WatchedPage
    await until(page, 'closed')
    vendor.set({ status: 500 })
    for (let i = 0; i < 3; i++) await call(one)
    const fromMs = performance.now()
    await call(one)
    await breakerOn(page).getByText('open', { exact: true }).waitFor()
    const shownMs = performance.now()
    // The time of a call and of reading the page depends on the machine.
    await call(one)
    await breakerOn(page).textContent()
    const patienceMs = 1_000 + 5 * (performance.now() - shownMs)
    expect(shownMs - fromMs).toBeLessThan(patienceMs)
    await page.getByTestId('countdown').waitFor()
  })

  it('the page explains a refused request with stage, reason and remedy', async () => {
    const { page, complaints } = onOne as WatchedPage
    await page.goto(`${one?.adminUrl}/dashboard/#/why?code=refused`)
    const answer = await call(one, MARKUP_USER)
    expect(answer.status).toBe(503)
    const row = page.locator('.decision').first()
    await row.getByText('CIRCUIT_OPEN').waitFor()
    await row.click()
    const detail = (await page.getByTestId('why-detail').textContent()) ?? ''
    expect(detail).toMatch(/the circuit is open \(\d+ failures in a row/)
    expect(detail).toContain('What would have admitted it')
    expect(detail).toMatch(/Breaker.*refused/s)
    expect(detail).toContain('not reached')
    expect(await page.locator('#app script').count()).toBe(0)
    expect(complaints.filter(isReal)).toEqual([])
  })

  it('the page shows nothing and does nothing without the right token', async () => {
    const { page, close } = await openPage(browser, `${two?.adminUrl}/dashboard/`)
    await show(page, 'not-the-right-token')
    await page.getByText('The token is wrong').waitFor()
    expect(await page.locator('.panel').count()).toBe(0)
    await close()
    const answer = await fetch(`${two?.adminUrl}/dashboard/act`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer not-the-right-token' },
      body: JSON.stringify({ act: 'reset', guard: 'openai' }),
    })
    expect(answer.status).toBe(401)
    await until((onTwo as WatchedPage).page, 'open')
  })

  it('Reset closes the breaker of the whole fleet', async () => {
    const { page } = onTwo as WatchedPage
    vendor.reset()
    expect(await act(page, 'Reset')).toContain('Done')
    await close(page)
    await until(page, 'closed')
    await expect.poll(async () => (await call(one)).status).toBe(200)
  })

  it('Isolate applies to all pods, and Reset ends it', async () => {
    const { page } = onTwo as WatchedPage
    expect(await act(page, 'Isolate')).toContain('Done')
    await close(page)
    await until(page, 'isolated')
    // On the page of the other pod, and for callers of that pod.
    const other = (onOne as WatchedPage).page
    await other.goto(`${one?.adminUrl}/dashboard/#/guards/openai`)
    await until(other, 'isolated')
    expect((await call(one)).status).toBe(503)
    expect(await act(page, 'Reset')).toContain('Done')
    await close(page)
    await until(other, 'closed')
    expect((await call(one)).status).toBe(200)
  })

  it('the page shows when Redis is unreachable and when it is back', async () => {
    const { page, complaints } = onTwo as WatchedPage
    redis.pause()
    await page.getByTestId('degraded').waitFor()
    redis.resume()
    await page.getByTestId('degraded').waitFor({ state: 'detached' })
    expect(complaints.filter(isReal)).toEqual([])
  })

  it('the page reconnects by itself after its gateway was restarted', async () => {
    const { page, complaints } = onOne as WatchedPage
    complaints.length = 0
    await one?.stop()
    await page.getByTestId('lost').waitFor()
    one = await spawnGateway({ ...options, ports })
    await page.getByTestId('lost').waitFor({ state: 'detached' })
    await page.goto(`${one.adminUrl}/dashboard/#/why`)
    await call(one, 'after')
    await page.locator('.decision').getByText('after').waitFor()
    expect(complaints.filter(isReal)).toEqual([])
  })

  it('the page receives no secret, key or body', async () => {
    const headers = { authorization: `Bearer ${TOKEN}` }
    const response = await fetch(`${two?.adminUrl}/dashboard/events`, { headers })
    const reader = response.body?.getReader()
    const decoder = new TextDecoder()
    await call(two)
    let text = ''
    while (!text.includes('"path"')) {
      const piece = await reader?.read()
      if (piece === undefined || piece.done)
        throw new Error(`it ended after ${text.length} characters`)
      text += decoder.decode(piece.value, { stream: true })
    }
    await reader?.cancel()
    for (const secret of [TOKEN, VENDOR_KEY, 'psst']) expect(text).not.toContain(secret)
  })
})
