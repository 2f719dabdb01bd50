// npm run screenshots: the pictures of the docs, taken from the page of a gateway that runs, with a real Redis, a
// load, and a vendor that breaks. Look at each before it is committed.

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureBrowser, findBrowser } from './ensure-browser.mjs'
import { root } from './run-command.mjs'
import { setupOrExit } from './setup.mjs'

const FOLDER = join(root, 'docs/images')
const [REDIS_PORT, PORT, ADMIN_PORT] = [26_379, 28_080, 28_081]
const PAGE = `http://127.0.0.1:${ADMIN_PORT}/dashboard/`
/** Long enough for charts that show something. */
const LOAD_MS = 100_000
const MOST_BYTES = 150_000

const PRIORITIES = ['critical', 'high', 'normal', 'low']
/** Jobs of each tenant by priority. */
const TENANTS = {
  acme: [6, 140, 420, 80],
  globex: [0, 90, 310, 160],
  initech: [0, 0, 260, 120],
  'Umbrella GmbH': [2, 30, 120, 90],
  hooli: [0, 12, 90, 40],
  stark: [0, 8, 60, 0],
  wayne: [1, 0, 40, 12],
  wonka: [0, 0, 24, 8],
  soylent: [0, 0, 9, 0],
  tyrell: [0, 0, 6, 0],
}

const say = (line) => process.stderr.write(`${line}\n`)
await setupOrExit({ build: ['packages/gateway'], redis: true })
await ensureBrowser(say)
const { chromium } = await import('playwright-core')

const folder = mkdtempSync(join(tmpdir(), 'screenshots-'))
mkdirSync(FOLDER, { recursive: true })
const children = []
let browser
try {
  const redis = start(process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server', [
    ...['--port', String(REDIS_PORT), '--dir', folder],
    ...['--save', '', '--appendonly', 'no'],
  ])
  start(
    process.execPath,
    [
      join(root, 'packages/gateway/dist/bin/spillway.js'),
      ...['gateway', '--port', String(PORT), '--admin-port', String(ADMIN_PORT)],
    ],
    { REDIS_URL: `redis://127.0.0.1:${REDIS_PORT}` },
  )
  await untilUp()
  browser = await chromium.launch({ executablePath: findBrowser(), args: ['--no-sandbox'] })
  await takeAll(redis)
} finally {
  await browser?.close()
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

async function takeAll(redis) {
  const light = await open({ width: 1280, height: 800 }, 'light')
  const dark = await open({ width: 1280, height: 800 }, 'dark')
  const narrow = await open({ width: 360, height: 760 }, 'light')
  await light.getByRole('switch', { name: 'Load' }).click()
  say(`a load for ${LOAD_MS / 1_000} seconds …`)
  await Promise.all([sleep(LOAD_MS), takeQueues()])
  await take(light, 'fleet-light', '#/fleet')
  await take(dark, 'fleet-dark', '#/fleet')
  await light.getByRole('switch', { name: 'Break the vendor' }).click()
  await dark.goto(`${PAGE}#/guards/openai`)
  await dark.locator('.guard-main .badge').getByText('open', { exact: true }).first().waitFor()
  await sleep(3_000)
  await take(dark, 'guard-dark', '#/guards/openai')
  await take(narrow, 'guard-narrow', '#/guards/openai')
  await light.setViewportSize({ width: 1120, height: 640 })
  await light.goto(`${PAGE}#/why?code=refused`)
  await light.locator('.decision').nth(2).click()
  await take(light, 'why-light')
  redis.kill('SIGSTOP')
  await light.setViewportSize({ width: 1280, height: 420 })
  await light.goto(`${PAGE}#/fleet`)
  await light.getByTestId('degraded').waitFor()
  await sleep(2_000)
  await take(light, 'degraded-light')
}

/** A dashboard in a separate process, with a job queue and an access token. */
async function takeQueues() {
  const built = (file) => import(join(root, 'packages', file))
  const [{ createSpillway }, { createDashboard }, { redisStore }] = await Promise.all(
    ['spillway/dist/index.js', 'dashboard/dist/index.js', 'spillway/dist/store/redis/index.js'].map(
      built,
    ),
  )
  const store = redisStore({ url: `redis://127.0.0.1:${REDIS_PORT}` })
  const spillway = createSpillway({ store, pod: 'worker-1' })
  const token = randomBytes(24).toString('hex')
  const server = createServer(createDashboard({ spillway, token })).listen(0, '127.0.0.1')
  try {
    while (!store.ready) await sleep(100)
    await fillQueue(spillway)
    const page = await browser.newPage({
      viewport: { width: 1000, height: 560 },
      colorScheme: 'light',
      reducedMotion: 'reduce',
    })
    await page.goto(`http://127.0.0.1:${server.address().port}/#/queues`)
    await take(page, 'locked-light')
    await page.getByLabel('Admin token').fill(token)
    await page.getByRole('button', { name: 'Show the fleet' }).click()
    await page.locator('.letters td').first().waitFor()
    await page.setViewportSize({ width: 1280, height: 700 })
    await take(page, 'queues-light')
    await page.close()
  } finally {
    server.closeAllConnections()
    server.close()
    await spillway.close({ graceMs: 0 })
    await store.close()
  }
}

async function fillQueue(spillway) {
  spillway.guard('openai', { limits: [{ limit: 600, windowMs: '1m' }] })
  const queue = spillway.jobQueue('summaries', { guard: 'openai', keep: 0 })
  const worker = queue.work(
    async ({ data }) => {
      if (data.bad) throw Object.assign(new Error('no such document'), { status: 404 })
      await sleep(3_000)
    },
    { concurrency: 8 },
  )
  const bad = ['acme', 'globex', 'hooli'].map((tenant) => ({ data: { bad: true }, tenant }))
  await queue.addMany(bad)
  while (worker.snapshot().dead < bad.length) await sleep(50)
  for (const [tenant, counts] of Object.entries(TENANTS)) {
    for (const [place, count] of counts.entries()) {
      const jobs = Array.from({ length: count }, () => ({ data: {}, tenant }))
      await queue.addMany(jobs.map((job) => ({ ...job, priority: PRIORITIES[place] })))
    }
  }
}

async function open(viewport, colorScheme) {
  const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' })
  await page.goto(PAGE)
  await page.getByTestId('calls').waitFor()
  return page
}

async function take(page, name, hash) {
  if (hash !== undefined) await page.goto(`${PAGE}${hash}`)
  await page.evaluate('scrollTo(0, 0)')
  await page.mouse.move(0, 0)
  await sleep(1_500)
  const path = join(FOLDER, `${name}.png`)
  await page.screenshot({ path })
  const { size } = statSync(path)
  say(`${path.slice(root.length)}  ${Math.round(size / 1_000)} kB`)
  if (size > MOST_BYTES) throw new Error(`${name} is too big for a repository`)
}

function start(command, args, env = {}) {
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: 'ignore',
  })
  children.push(child)
  return child
}

async function untilUp() {
  for (let attempt = 0; attempt < 100; attempt++) {
    const response = await fetch(PAGE).catch(() => undefined)
    if (response?.ok) return
    await sleep(200)
  }
  throw new Error('the gateway did not start')
}
