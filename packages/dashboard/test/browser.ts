/** A real Chromium for tests, one per test file, with a page that records its own console. */
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Page,
  type ViewportSize,
} from 'playwright-core'
import { findBrowser } from '../../../scripts/ensure-browser.mjs'

/**
 * Generous, because browsers are slow on a busy machine. Failures are reported as soon as they are
 * certain.
 */
const PATIENCE_MS = 90_000
const VIEWPORT: ViewportSize = { width: 1280, height: 800 }

/** Undefined if there is no browser; tests that need one are skipped. */
export const browserPath = findBrowser()

export async function startBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error('there is no Chromium')
  return chromium.launch({
    executablePath: browserPath,
    // Containers usually run tests as root and with little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--enable-precise-memory-info'],
  })
}

export interface WatchedPage {
  readonly page: Page
  /** Errors and warnings of the page's console. */
  readonly complaints: string[]
  close(): Promise<void>
}

/** Pages without options other than a size, ready for the next test: opening one costs a second of CPU time. */
const idlePages = new WeakMap<Browser, Page[]>()

/** Each test has to use its own origin, because tests share cookies and caches unless they set such options. */
export async function openPage(
  browser: Browser,
  url: string,
  { viewport = VIEWPORT, ...options }: BrowserContextOptions & { viewport?: ViewportSize } = {},
): Promise<WatchedPage> {
  const isPlain = Object.keys(options).length === 0
  const idle = isPlain ? (idlePages.get(browser) ?? []) : []
  const page = idle.pop() ?? (await newPage(browser, options))
  await page.setViewportSize(viewport)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.goto(url)
  const close = async () => {
    if (!isPlain) return page.context().close()
    for (const name of ['console', 'pageerror', 'dialog']) page.removeAllListeners(name)
    await page.goto('about:blank')
    idlePages.set(browser, [...(idlePages.get(browser) ?? []), page])
  }
  return { page, complaints, close }
}

async function newPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  return page
}
