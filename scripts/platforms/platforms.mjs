// npm run platforms: the tests on other versions of Node, on other runtimes and with other Redis servers.
// Prints tables for docs/operations/platforms.md.
//
//   npm run platforms -- node [VERSION…]     quick tests and Redis conformance suite on each version of Node
//   npm run platforms -- redis SERVER…       Redis conformance suite with each of these programs
//   npm run platforms -- runtimes            examples on Deno and Bun, compared with their output on Node
//
// `--suites quick` or `--suites redis` runs one of the two. `--only twins` runs the files of the conformance suite whose
// names contain this word.

import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../run-command.mjs'
import { runVitest } from '../run-vitest.mjs'
import { setupOrExit } from '../setup.mjs'
import { closingLine } from '../test-tally.mjs'
import { nodeBinary, npmBinary } from './npm-binary.mjs'

/** The oldest that `engines` allows, and the newest of the later lines. */
const NODE_VERSIONS = ['20.19.0', '22', '24', '26']

/** Every file with claims about shared state: on one server, on Sentinels, on a Cluster, over TLS, with each client. */
const CONFORMANCE = [
  'conformance',
  'twins',
  'topologies/',
  'spillway/test/user-limits',
  'redis-start',
]

/** Only ends tests that hang. */
const LONG_TIMEOUT = '--testTimeout=600000'

const RUNTIMES = [
  { name: 'Deno', spec: '@deno/linux-x64-glibc@2', path: 'deno', args: ['run', '-A', '--no-lock'] },
  { name: 'Bun', spec: '@oven/bun-linux-x64-baseline@1', path: 'bin/bun', args: ['run'] },
]
/** These need Redis, arguments or a screen. */
const NOT_ALONE = ['quick-start', 'migrate-bullmq-before', 'migrate-bullmq', 'overloaded-pod']
/** Only ends a program that hangs. */
const ENDS_WITHIN_MS = 120_000

const LOGS = join(root, 'node_modules/.cache/platforms')
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    suites: { type: 'string', multiple: true, default: ['quick', 'redis'] },
    only: { type: 'string', multiple: true, default: CONFORMANCE },
  },
})
const SUITES = {
  quick: ['--project', 'quick', '--project', 'simulation'],
  redis: ['--project', 'io', '--project', 'sockets', ...options.only],
}
const [what, ...rest] = positionals
const commands = { node: onNode, redis: onRedis, runtimes: onRuntimes }
if (!Object.hasOwn(commands, what ?? '')) {
  process.stderr.write('npm run platforms -- node [VERSION…] | redis SERVER… | runtimes\n')
  process.exit(2)
}
await setupOrExit({ build: ['e2e', 'examples', 'packages/gateway'], types: false, redis: true })
mkdirSync(LOGS, { recursive: true })
await commands[what](rest)

async function onNode(given) {
  print('| Node.js | quick tests | Redis conformance suite |\n|---|---|---|')
  for (const version of given.length > 0 ? given : NODE_VERSIONS) {
    const node = nodeBinary(version)
    const cells = [firstLine(node, ['--version']).replace('v', '')]
    for (const [suite, args] of Object.entries(SUITES)) {
      const isChosen = options.suites.includes(suite)
      cells.push(isChosen ? await tests(`node-${version}-${suite}`, args, { node }) : 'not run')
    }
    print(`| ${cells.join(' | ')} |`)
  }
}

async function onRedis(servers) {
  print('| Server | Redis conformance suite |\n|---|---|')
  for (const server of servers) {
    // Valkey 7.2 prints no name.
    const printed = firstLine(server, ['--version'])
    const [, name = 'Valkey', version] = /^(?:(\w+) )?server v=(\S+)/i.exec(printed)
    const env = { ...process.env, SPILLWAY_REDIS_SERVER: server }
    print(`| ${name} ${version} | ${await tests(`${name}-${version}`, SUITES.redis, { env })} |`)
  }
}

/** Runs tests, with their output in a log, and returns the counts. */
async function tests(log, args, { node = process.execPath, env = process.env }) {
  const output = openSync(join(LOGS, `${log}.log`), 'w')
  const built = { ...env, SPILLWAY_TEST_BUILT: '1' }
  const { count, exitCode } = await runVitest([...args, LONG_TIMEOUT], { output, node, env: built })
  closeSync(output)
  if (exitCode !== 0) {
    process.exitCode = 1
    process.stderr.write(`see ${join(LOGS, `${log}.log`)}\n`)
  }
  return count === undefined ? 'interrupted' : closingLine(count)
}

async function onRuntimes() {
  const examples = readdirSync(join(root, 'examples/dist'))
    .filter((file) => file.endsWith('.js') && !NOT_ALONE.includes(file.slice(0, -'.js'.length)))
    .map((file) => ({ file, expected: runExample(process.execPath, [], file) }))
  print('| Runtime | examples with the output of Node.js | others |\n|---|---|---|')
  for (const { name, spec, path, args } of RUNTIMES) {
    const program = npmBinary(spec, path)
    const version = firstLine(program, ['--version']).match(/\d+\.\d+\.\d+/)?.[0]
    const others = examples
      .filter(({ file, expected }) => runExample(program, args, file) !== expected)
      .map(({ file }) => file.replace('.js', ''))
    const same = `${examples.length - others.length} of ${examples.length}`
    print(`| ${name} ${version} | ${same} | ${others.join(', ')} |`)
  }
}

/** What an example prints. Runtimes quote and break printed objects differently, so this is without quotes and blanks. */
function runExample(program, args, file) {
  const { status, stdout } = spawnSync(program, [...args, join('examples/dist', file)], {
    cwd: root,
    encoding: 'utf8',
    timeout: ENDS_WITHIN_MS,
    killSignal: 'SIGKILL',
  })
  return `${status} ${stdout.replace(/[\s'"`,]/g, '')}`
}

function firstLine(program, args) {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout.split('\n')[0]
}

function print(line) {
  process.stdout.write(`${line}\n`)
}
