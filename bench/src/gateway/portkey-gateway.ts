/**
 * Portkey's gateway for Node. It has about a hundred dependencies, so it is not a dependency of this repository: the
 * first run installs it from a lockfile into its own folder.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'
import { freePort } from '../own-process.js'
import { startProgram } from './program.js'

const PACKAGE = '@portkey-ai/gateway'
const PINNED = fileURLToPath(new URL('../../portkey', import.meta.url))
const INSTALLED = fileURLToPath(new URL('../../.cache/portkey', import.meta.url))
const FILES = ['package.json', 'package-lock.json']

export function portkeyName(): string {
  const { dependencies } = JSON.parse(readFileSync(join(PINNED, 'package.json'), 'utf8'))
  return `${PACKAGE} ${dependencies[PACKAGE]}`
}

/** Returns the address of the gateway. */
export async function startPortkey(preparation: Preparation): Promise<string> {
  await install(preparation.signal)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = join(INSTALLED, 'node_modules', PACKAGE, 'build/start-server.js')
  await startProgram(
    // Headless: its console would keep a log of all requests.
    { name: portkeyName(), args: [program, `--port=${port}`, '--headless'], readyUrl: `${url}/` },
    preparation,
  )
  return url
}

/** Headers that select the vendor and its address. */
export function portkeyHeaders(vendor: string): Record<string, string> {
  return { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${vendor}/v1` }
}

async function install(signal: AbortSignal): Promise<void> {
  const stampFile = join(INSTALLED, 'installed-from')
  const stamp = createHash('sha256')
    .update(await readFile(join(PINNED, 'package-lock.json')))
    .digest('hex')
  if (existsSync(stampFile) && (await readFile(stampFile, 'utf8')) === stamp) return
  process.stderr.write(`installing ${portkeyName()} (first run only) …\n`)
  await rm(INSTALLED, { recursive: true, force: true })
  await mkdir(INSTALLED, { recursive: true })
  for (const file of FILES) await copyFile(join(PINNED, file), join(INSTALLED, file))
  await npm(['ci', '--ignore-scripts', '--loglevel=error', '--no-audit', '--no-fund'], signal)
  await writeFile(stampFile, stamp)
}

async function npm(args: readonly string[], signal: AbortSignal): Promise<void> {
  const cli = process.env.npm_execpath
  const [program, ...first] =
    cli && basename(cli) === 'npm-cli.js' ? [process.execPath, cli] : ['npm']
  const child = spawn(program!, [...first, ...args], { cwd: INSTALLED, stdio: ['ignore', 2, 2] })
  const end = () => child.kill()
  signal.addEventListener('abort', end)
  const [code] = await once(child, 'close')
  signal.removeEventListener('abort', end)
  signal.throwIfAborted()
  if (code === 0) return
  throw new BenchError(
    `npm ci failed (exit code ${code}); its message is above. Is the npm registry reachable?`,
  )
}
