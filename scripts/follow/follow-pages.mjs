// npm run check -- pages: follows the quickstarts, the tutorial and the Kubernetes page word for word: saves their files,
// runs their commands in order and compares what they print with what the page shows. Pages and packages are those of
// the last commit. Takes minutes.
//
//   node scripts/follow/follow-pages.mjs [PAGE…]     only these, such as start/tutorial

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOnPath } from '../debian-package.mjs'
import { root, run, SKIPPED } from '../run-command.mjs'
import { setupOrExit } from '../setup.mjs'
import { startRegistry } from './local-registry.mjs'
import { isShown, stepsOf } from './page-steps.mjs'
import { openTerminal } from './terminal.mjs'

/** The Kubernetes page needs what the tutorial installs in the clone. */
const PAGES = [
  { page: 'start/quickstart-library', isInClone: false },
  { page: 'start/quickstart-gateway', isInClone: false },
  { page: 'start/tutorial', isInClone: true },
  { page: 'operations/kubernetes', isInClone: true },
]

/**
 * Everything that differs from what a reader does. Besides: `npm install` and `npx` use a registry on this machine that
 * has the packages of this repository, and steps in a browser are left out (a test of the dashboard does them).
 */
const SUBSTITUTES = [
  {
    why: 'no Docker: the same server as a process, which the page offers too',
    from: /^docker run .* redis:7\b.*$/gm,
    to: "redis-server --save ''",
  },
  {
    why: 'no cluster: manifests are rendered and validated, see without-cluster.mjs',
    from: /^(kubectl|helm) /gm,
    to: 'node scripts/follow/without-cluster.mjs $1 ',
  },
  {
    why: 'a reader copies the id of the last answer',
    from: /\bREQUEST-ID\b/g,
    to: (lastOutput) => /^spillway-request-id: (\S+)/m.exec(lastOutput)?.[1],
  },
]

/**
 * The names of programs on the pages, and the commands that start them. A gateway's command may contain a URL of Redis.
 */
const PROGRAMS = { gateway: /spillway gateway|npm start/, Redis: /^redis-server /m }
/** The ports of the programs on the pages. */
const PORTS = [6379, 8080, 8081, 8090, 8091, 9000]
const WITHIN_MS = 900_000

const wanted = process.argv.slice(2)
const chosen = PAGES.filter(({ page }) => wanted.length === 0 || wanted.includes(page))
await setupOrExit({ quiet: true, build: ['packages/gateway'], redis: true })
await followAll()

async function followAll() {
  if (!isOnPath('kubectl') || !isOnPath('bash') || !isOnPath('curl')) {
    process.stdout.write('bash, curl and kubectl are needed\n')
    process.exitCode = SKIPPED
    return
  }
  const used = (await Promise.all(PORTS.map(portInUse))).filter((port) => port !== undefined)
  if (used.length > 0) {
    process.stdout.write(`the pages use ports that are taken: ${used.join(', ')}\n`)
    process.exitCode = 1
    return
  }
  const scratch = mkdtempSync(join(tmpdir(), 'pages-'))
  // Helm may run as a user without rights, and must be able to read it.
  chmodSync(scratch, 0o755)
  const registry = await startRegistry(scratch)
  try {
    const clone = join(scratch, 'clone')
    await run('git', ['clone', '--quiet', '--depth', '1', `file://${root}`, clone])
    for (const { page, isInClone } of chosen) {
      const folder = isInClone ? clone : join(scratch, page.replace('/', '-'))
      mkdirSync(folder, { recursive: true })
      const problem = await followPage({ page, clone, folder, scratch, registry })
      process.stdout.write(problem ?? `${page}: followed\n`)
      if (problem !== undefined) process.exitCode = 1
    }
  } finally {
    registry.close()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** @returns {Promise<string | undefined>} the first thing that differs from the page */
async function followPage({ page, clone, folder, scratch, registry }) {
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    npm_config_registry: registry.url,
    // npx prompts before it installs a package.
    npm_config_yes: 'true',
    // A version of our packages in the usual cache is an older one.
    npm_config_cache: join(scratch, 'npm-cache'),
  }
  const open = () => openTerminal({ folder, scratch, env })
  const steps = stepsOf(readFileSync(join(clone, `docs/${page}.md`), 'utf8'))
  const terminals = [open()]
  const stopAll = () => Promise.all(terminals.map((terminal) => terminal.stop()))
  process.once('SIGINT', stopAll).once('SIGTERM', stopAll)
  let lastOutput = ''
  try {
    for (const { stop, file, text, run: block, line, isOtherTerminal, shows } of steps) {
      if (file !== undefined) writeFileSync(join(folder, file), text)
      if (stop !== undefined) await stopProgram(terminals, PROGRAMS[stop])
      if (block === undefined) continue
      if (isOtherTerminal || terminals.length === 0) terminals.push(open())
      const isEnough = (output) => shows !== undefined && isShown(shows, output)
      const command = substitute(block, lastOutput)
      const ran = await terminals.at(-1).run(command, { isEnough, withinMs: WITHIN_MS })
      lastOutput = ran.output
      const problem =
        ran.problem ??
        (shows === undefined || isEnough(ran.output) ? undefined : 'the page shows other output')
      if (problem !== undefined) return report({ page, line, problem, command, shows, ran })
    }
    return undefined
  } finally {
    process.off('SIGINT', stopAll).off('SIGTERM', stopAll)
    await stopAll()
  }
}

function substitute(block, lastOutput) {
  return SUBSTITUTES.reduce((text, { from, to }) => {
    return text.replace(from, typeof to === 'string' ? to : () => to(lastOutput))
  }, block)
}

async function stopProgram(terminals, started) {
  const busy = terminals.filter(({ commands }) => started.test(commands.at(-1)))
  for (const terminal of busy) {
    terminals.splice(terminals.indexOf(terminal), 1)
    await terminal.stop()
  }
}

function report({ page, line, problem, command, shows = '', ran }) {
  const parts = { command, 'the page shows': shows, printed: ran.output.slice(-5_000) }
  const text = Object.entries(parts).map(([title, part]) => `--- ${title}\n${part.trimEnd()}\n`)
  return `docs/${page}.md:${line}: ${problem}\n${text.join('')}`
}

/** The port, if a program listens on it. */
function portInUse(port) {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(port))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(undefined)))
  })
}
