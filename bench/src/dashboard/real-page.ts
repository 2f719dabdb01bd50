/** The page in a real Chromium, and what only its own process can say of it: frames it draws, memory it has. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'

const VIEWS = ['#/fleet', '#/guards/vendor-0', '#/why']
const VIEW_MS = 4_000
const PATIENCE_MS = 60_000

export interface RealPage {
  /** Looks at one view after the other for a while; answers with what each of them came to. */
  tour<T>(measure: (page: Page, ms: number) => Promise<T>): Promise<T[]>
  /** What the process that draws it has to itself, and its part of what it shares with others. */
  memoryMb(): Promise<number>
}

export async function openRealPage(
  url: string,
  pods: number,
  { atEnd }: Preparation,
): Promise<RealPage> {
  const browser = await startBrowser()
  atEnd(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } })
  page.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(url)
  await page.getByTestId('pods-alive').getByText(`${pods}`, { exact: true }).waitFor()
  return {
    async tour(measure) {
      const found = []
      for (const hash of VIEWS) {
        await page.goto(`${url}/${hash}`)
        await page.locator('.panel').first().waitFor()
        // What it takes to draw a view for the first time is not what it takes to keep it alive.
        await sleep(500)
        const before = await page.locator('main').innerText()
        found.push(await measure(page, VIEW_MS))
        // A page without changes reaches any frame rate, so it would prove nothing.
        if ((await page.locator('main').innerText()) === before || complaints.length > 0) {
          throw new BenchError(`${hash} does not live: ${complaints[0] ?? 'nothing moves'}`)
        }
      }
      return found
    },
    memoryMb: async () => Math.max(...(await rendererPids(browser)).map(pssMb)),
  }
}

async function startBrowser(): Promise<Browser> {
  const executablePath = process.env.SPILLWAY_CHROMIUM
  if (executablePath === undefined) {
    throw new BenchError('There is no Chromium on the PATH; SPILLWAY_CHROMIUM may name one.')
  }
  // In a container the user is often root and shared memory is small.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

/** When each frame began, by the page's own clock. As text, because it is for a browser. */
export function frameTimes(page: Page, ms: number): Promise<number[]> {
  return page.evaluate(`new Promise((resolve) => {
    const times = []
    const next = (nowMs) => {
      times.push(nowMs)
      if (nowMs - times[0] >= ${ms}) resolve(times)
      else requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  })`)
}

/** How many frames there were in each second, wherever one lets it begin. */
export function framesByTheSecond(times: readonly number[]): number[] {
  const last = times.at(-1) ?? 0
  return times
    .filter((fromMs) => fromMs + 1_000 <= last)
    .map((fromMs) => times.filter((at) => at > fromMs && at <= fromMs + 1_000).length)
}

async function rendererPids(browser: Browser): Promise<number[]> {
  const session = await browser.newBrowserCDPSession()
  try {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    const pids = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id)
    if (pids.length === 0) throw new BenchError('Chromium names no process that draws the page.')
    return pids
  } finally {
    await session.detach()
  }
}

/** All that is its own, and of each page that several processes share its part. */
function pssMb(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]) / 1_024
  } catch {
    throw new BenchError('What a process has in memory is read from /proc, which is not here.')
  }
}
