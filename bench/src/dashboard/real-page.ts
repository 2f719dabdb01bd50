/** Opens the dashboard page in Chromium and measures frame rate and memory of its renderer process. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'

const VIEWS = ['#/fleet', '#/guards/vendor-0', '#/why']
const VIEW_MS = 4_000
const PATIENCE_MS = 60_000

export interface RealPage {
  /** Opens each view for a while. Returns the frames per second of each view. */
  tour<T>(measure: (page: Page, ms: number) => Promise<T>): Promise<T[]>
  /** Memory of the renderer process in bytes: its private pages and its share of shared pages. */
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
        // The first rendering of a view is not measured, only its updates.
        await sleep(500)
        const before = await page.locator('main').innerText()
        found.push(await measure(page, VIEW_MS))
        // A page without changes reaches any frame rate, so its result would mean nothing.
        if ((await page.locator('main').innerText()) === before || complaints.length > 0) {
          throw new BenchError(`${hash} does not update: ${complaints[0] ?? 'no text changes'}`)
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
    throw new BenchError('no Chromium on the PATH; set SPILLWAY_CHROMIUM to its path')
  }
  // In a container the user is often root and shared memory is small.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

/** Records the start of each frame by the page's clock. A string, because it runs in the browser. */
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

/** Frames in each window of one second, sliding over the whole recording. */
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
    if (pids.length === 0) throw new BenchError('Chromium has no renderer process')
    return pids
  } finally {
    await session.detach()
  }
}

/** Proportional set size: private pages, plus each shared page divided by its number of processes. */
function pssMb(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]) / 1_024
  } catch {
    throw new BenchError('memory of a process is read from /proc, which this system does not have')
  }
}
