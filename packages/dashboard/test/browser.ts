/** A real Chromium for tests, one for a file of tests, with a page that watches its own console. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** As in scripts/ensure-browser.mjs, which gets one where there is none. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

export const browserPath = findBrowser()

function findBrowser(): string | undefined {
  const given = process.env.SPILLWAY_CHROMIUM
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const files = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)))
  return (given === undefined ? files : [given]).find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export async function startBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error('there is no Chromium')
  return chromium.launch({
    executablePath: browserPath,
    // Whoever runs tests in a container is often root, and has little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--enable-precise-memory-info'],
  })
}

export interface WatchedPage {
  readonly page: Page
  /** What the page has complained about. */
  readonly complaints: string[]
  close(): Promise<void>
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
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
  return { page, complaints, close: () => context.close() }
}
