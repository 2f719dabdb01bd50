// Prepares a clone: installs dependencies and builds the code. Needs only Node. Writes only to stderr, because
// callers use stdout for their results.

import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { buildLua } from './build-lua.mjs'
import { buildPage } from './build-page.mjs'
import { ensureRedis } from './ensure-redis.mjs'
import { isMain, root, run, runNode, tools } from './run-command.mjs'

const STDERR_ONLY = ['ignore', 2, 2]

class SetupError extends Error {
  code = 'SETUP_FAILED'
}

/**
 * @param {object} options
 * @param {boolean} [options.quiet] no progress lines, only failures
 * @param {string[]} [options.build] TypeScript projects to build, all by default; `[]` builds none
 * @param {boolean} [options.types] `false` skips type checks, which halves the build time
 * @param {boolean} [options.redis] requires a redis-server, and installs it if possible
 */
export async function setup({ quiet = false, build = ['.'], types = true, redis = false } = {}) {
  const say = quiet ? () => {} : (line) => process.stderr.write(`${line}\n`)
  checkNodeVersion()
  await install(say)
  packScripts()
  const problem = redis ? await ensureRedis(say) : undefined
  if (problem !== undefined) throw new SetupError(problem)
  if (build.length > 0) await compile(build, types, say)
}

/** For scripts: prints the error in one line, without a stack trace, and exits. */
/** `beforeExit` is called before exiting on a failure. */
export async function setupOrExit(options, beforeExit = () => {}) {
  try {
    await setup(options)
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    process.stderr.write(`\n${error.message}\n`)
    beforeExit()
    process.exit(1)
  }
}

function checkNodeVersion() {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const wanted = engines.node.replace('>=', '')
  const [major, minor] = wanted.split('.').map(Number)
  const [ourMajor, ourMinor] = process.versions.node.split('.').map(Number)
  if (ourMajor > major || (ourMajor === major && ourMinor >= minor)) return
  throw new SetupError(`Spillway needs Node ${wanted} or newer; this is Node ${process.version}.`)
}

async function install(say) {
  const stampFile = join(root, 'node_modules/.installed-from')
  const stamp = installStamp()
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return

  const firstRun = !existsSync(join(root, 'node_modules'))
  say(
    firstRun
      ? 'installing dependencies (first run only) …'
      : 'installing dependencies (package-lock.json is not what node_modules came from) …',
  )
  // An interrupted install must not look like a finished one.
  rmSync(stampFile, { force: true })
  const { code } = await npm(['ci', '--loglevel=error', '--include=dev', '--no-audit', '--no-fund'])
  if (code !== 0) {
    throw new SetupError(
      `npm ci failed (exit code ${code}); its message is above. Is the npm registry reachable?`,
    )
  }
  writeFileSync(stampFile, stamp)
}

function installStamp() {
  const lockfile = join(root, 'package-lock.json')
  if (!existsSync(lockfile)) throw new SetupError('package-lock.json is missing from this clone.')
  const hash = createHash('sha256').update(readFileSync(lockfile)).digest('hex')
  // Some packages have native code, so a directory that was installed on another system is installed again.
  return `${hash} ${process.platform}-${process.arch}\n`
}

function npm(args) {
  const cli = process.env.npm_execpath
  if (cli && basename(cli) === 'npm-cli.js') return runNode([cli, ...args], { stdio: STDERR_ONLY })
  // On Windows npm is a .cmd file, which only a shell can start.
  return run('npm', args, { stdio: STDERR_ONLY, shell: process.platform === 'win32' })
}

function packScripts() {
  try {
    buildLua()
  } catch (error) {
    throw new SetupError(`The Lua scripts could not be packed: ${error.message}`)
  }
}

async function compile(projects, types, say) {
  // An up-to-date build takes under a second and is not worth a line.
  const announce = setTimeout(() => say('building …'), 1_000)
  const args = [tools.tsc, '-b', ...(types ? [] : ['--noCheck']), ...projects]
  const [{ code }] = await Promise.all([runNode(args, { stdio: STDERR_ONLY }), buildPage(say)])
  clearTimeout(announce)
  if (code !== 0) throw new SetupError('The build failed; the errors are above.')
}

if (isMain(import.meta.url)) await setupOrExit()
