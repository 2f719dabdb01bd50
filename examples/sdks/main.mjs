/** Starts the gateway as `npm start` does, runs the suite against it, and writes the tables. */
import { spawn } from 'node:child_process'
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { callerKeys, gatewayConfig } from './gateway-config.mjs'
import { problemsOf, withTables } from './table.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = join(root, 'docs/gateway/sdks.md')
const work = mkdtempSync(join(tmpdir(), 'sdks-'))
const logFile = join(work, 'gateway.log')
const config = join(work, 'spillway.yaml')
// JSON is valid YAML.
writeFileSync(config, JSON.stringify(gatewayConfig()))
const [port, adminPort] = [await freePort(), await freePort()]
const start = join(root, 'scripts/start.mjs')
const args = [start, '--config', config, '--port', String(port), '--admin-port', String(adminPort)]
const { REDIS_URL: _, ...env } = process.env
const gateway = spawn(process.env.SUITE_GATEWAY_NODE ?? process.execPath, args, {
  cwd: root,
  env: { ...env, ...callerKeys() },
  stdio: ['ignore', 'pipe', 'inherit'],
})
gateway.stdout.pipe(createWriteStream(logFile))
const gone = new Promise((resolve) => gateway.once('exit', resolve))
let failed = true
try {
  const url = `http://127.0.0.1:${port}`
  await ready(url)
  const report = JSON.parse(await runSuite({ SUITE_URL: url, SUITE_LOG: logFile }))
  writeFileSync(page, withTables(readFileSync(page, 'utf8'), report))
  const problems = problemsOf(report)
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  failed = problems.length > 0
  process.stdout.write(
    failed ? 'The suite failed.\n' : 'The suite passed; docs/gateway/sdks.md is written.\n',
  )
} finally {
  gateway.kill('SIGTERM')
  await gone
  rmSync(work, { recursive: true, force: true })
}
process.exit(failed ? 1 : 0)

/** Building may take a minute. */
async function ready(url) {
  for (let second = 0; second < 180; second++) {
    try {
      await fetch(`${url}/v1/models`)
      return
    } catch {
      if (gateway.exitCode !== null) break
      await sleep(1_000)
    }
  }
  throw new Error('the gateway did not start')
}

function runSuite(more) {
  const suite = fileURLToPath(new URL('suite.mjs', import.meta.url))
  const child = spawn(process.execPath, [suite], {
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  return new Promise((resolve) => child.once('close', () => resolve(text)))
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
