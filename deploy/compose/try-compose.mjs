// node deploy/compose/try-compose.mjs: runs the services of compose.yaml without Docker, except Grafana. Each has a network
// namespace and the name of its service, so compose.yaml's commands, spillway.yaml, prometheus.yml and load.mjs are used
// as they are. Needs root on Linux, with redis-server and prometheus. Everything ends with this process.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const BIN = fileURLToPath(new URL('../../packages/gateway/dist/bin/spillway.js', import.meta.url))
const SERVICES = ['redis', 'mock-vendor', 'gateway-1', 'gateway-2', 'prometheus', 'load']
const addressOf = (name) => `10.99.0.${SERVICES.indexOf(name) + 2}`
const START_MS = 60_000
const QUERIES = [
  'sum(up{job="spillway"})',
  'min by (job) (spillway_pods)',
  'sum(spillway_calls_total)',
]

if (process.argv[2] !== 'inside') {
  const args = ['--net', '--mount', process.execPath, fileURLToPath(import.meta.url), 'inside']
  process.exit(spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1)
}

const { services } = parse(readFileSync(join(FOLDER, 'compose.yaml'), 'utf8'), { merge: true })
const folder = mkdtempSync(join(tmpdir(), 'compose-'))
const children = []
try {
  buildNetwork()
  // The official image of Redis is built without protected mode.
  start('redis', [...services.redis.command, '--protected-mode', 'no'])
  start('mock-vendor', [process.execPath, BIN, ...services['mock-vendor'].command])
  for (const name of ['gateway-1', 'gateway-2']) {
    const args = ['gateway', '--config', join(FOLDER, 'spillway.yaml')]
    start(name, [process.execPath, BIN, ...args], { HOSTNAME: services[name].hostname })
  }
  startPrometheus()
  await until('both gateways are scraped', async () => (await query(QUERIES[0])) === 2)
  const load = start(
    'load',
    [process.execPath, join(FOLDER, 'load.mjs'), ...services.load.command],
    {
      RATE: services.load.environment.RATE,
      SECONDS: '10',
    },
  )
  const { sent, statuses } = JSON.parse(await load.output)
  process.stdout.write(`load: ${sent} requests, ${JSON.stringify(statuses)}\n`)
  assert.ok(statuses['200'] >= sent * 0.8, 'most requests must be answered')
  await until('Prometheus has the calls', async () => (await query(QUERIES[2])) >= sent)
  for (const text of QUERIES) process.stdout.write(`${text}: ${await query(text)}\n`)
  assert.equal(await query(QUERIES[1]), 2, 'each gateway must know the other')
  process.stdout.write('compose works, without Grafana\n')
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

/** A bridge, and a namespace for each service; names are in a hosts file that only this process and its children see. */
function buildNetwork() {
  const hosts = SERVICES.map((name) => `${addressOf(name)} ${name}`)
  writeFileSync(join(folder, 'hosts'), `127.0.0.1 localhost\n${hosts.join('\n')}\n`)
  must('mount', '--make-rprivate', '/')
  must('mount', '--bind', join(folder, 'hosts'), '/etc/hosts')
  must('mkdir', '-p', '/run/netns')
  must('mount', '-t', 'tmpfs', 'tmpfs', '/run/netns')
  must('ip', 'link', 'add', 'br0', 'type', 'bridge')
  must('ip', 'addr', 'add', '10.99.0.1/24', 'dev', 'br0')
  must('ip', 'link', 'set', 'br0', 'up')
  for (const [index, name] of SERVICES.entries()) {
    const cable = ['veth', 'peer', 'name', 'eth0', 'netns', name]
    must('ip', 'netns', 'add', name)
    must('ip', 'link', 'add', `v${index}`, 'type', ...cable)
    must('ip', 'link', 'set', `v${index}`, 'master', 'br0', 'up')
    must('ip', '-n', name, 'addr', 'add', `${addressOf(name)}/24`, 'dev', 'eth0')
    must('ip', '-n', name, 'link', 'set', 'eth0', 'up')
    must('ip', '-n', name, 'link', 'set', 'lo', 'up')
  }
}

function startPrometheus() {
  for (const volume of services.prometheus.volumes) {
    const [source, target] = volume.split(':')
    cpSync(join(FOLDER, source), join(folder, target.replace('/etc/prometheus/', '')))
  }
  const config = `--config.file=${join(folder, 'prometheus.yml')}`
  start('prometheus', ['prometheus', config, `--storage.tsdb.path=${join(folder, 'data')}`])
}

function start(service, command, env = {}) {
  const child = spawn('ip', ['netns', 'exec', service, ...command], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  const output = new Promise((resolve) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    child.on('close', () => resolve(text))
  })
  return { output }
}

async function query(text) {
  const url = `http://prometheus:9090/api/v1/query?query=${encodeURIComponent(text)}`
  const answer = await fetch(url).catch(() => undefined)
  if (answer?.ok !== true) return undefined
  const { data } = await answer.json()
  return Number(data.result[0]?.value[1])
}

async function until(what, isSo) {
  const endMs = performance.now() + START_MS
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`after ${START_MS} ms still not: ${what}`)
    await sleep(200)
  }
}

function must(command, ...args) {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stderr}`)
}
