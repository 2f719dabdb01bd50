// npm run platforms: the tests on other versions of Node, on other runtimes and with other Redis servers.
// Prints the tables of docs/operations/platforms.md.

import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../run-command.mjs'
import { runVitest } from '../run-vitest.mjs'
import { setupOrExit } from '../setup.mjs'
import { closingLine } from '../test-tally.mjs'
import { nodeBinary, npmBinary } from './npm-binary.mjs'

const USAGE = `npm run platforms -- node [VERSION…]   quick tests and Redis conformance suite on each version of Node
npm run platforms -- redis SERVER…     Redis conformance suite with each of these programs
npm run platforms -- runtimes          examples on Deno and Bun, compared with their output on Node

  --suites quick|redis  node: runs one of the two
  --only WORD           node, redis: instead of the Redis conformance suite, runs the tests with sockets or processes
                        whose path contains WORD
`

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
  {
    name: 'Deno',
    npmPackage: '@deno/linux-x64-glibc',
    major: '2',
    path: 'deno',
    args: ['run', '-A', '--no-lock'],
  },
  {
    name: 'Bun',
    npmPackage: '@oven/bun-linux-x64-baseline',
    major: '1',
    path: 'bin/bun',
    args: ['run'],
  },
]
/** These need Redis, arguments or a screen. */
const NOT_ALONE = [
  'quick-start',
  'shared-limit',
  'migrate-bullmq-before',
  'migrate-bullmq',
  'overloaded-pod',
]
/** Only ends a program that hangs. */
const ENDS_WITHIN_MS = 120_000

const LOGS = join(root, 'node_modules/.cache/platforms')
const { values: options, positionals } = readArguments()
if (options.help) {
  process.stdout.write(USAGE)
  process.exit()
}
const SUITES = {
  quick: {
    head: 'quick tests',
    args: ['--project', 'quick'],
  },
  redis: {
    head: options.only ? `tests of ${options.only.join(', ')}` : 'Redis conformance suite',
    args: ['--project', 'io', '--project', 'sockets', ...(options.only ?? CONFORMANCE)],
  },
}
const [what, ...given] = positionals
const run = prepare()
await setupOrExit({ build: ['e2e', 'examples', 'packages/gateway'], types: false, redis: true })
mkdirSync(LOGS, { recursive: true })
await run()

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        suites: { type: 'string', multiple: true },
        only: { type: 'string', multiple: true },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    return exitWith(`${error.message}\n\n${USAGE}`)
  }
}

/** Checks the command line, and returns the function that measures. */
function prepare() {
  if (options.suites && what !== 'node') exitWith(`--suites needs node\n\n${USAGE}`)
  if (what === 'node') {
    const suites = options.suites ?? Object.keys(SUITES)
    const unknown = suites.find((suite) => !Object.hasOwn(SUITES, suite))
    if (unknown !== undefined) exitWith(`unknown suite "${unknown}"; there are quick and redis\n`)
    const odd = given.find((version) => !/^\d+(\.\d+){0,2}$/.test(version))
    if (odd !== undefined) exitWith(`"${odd}" is not a version of Node, such as 22 or 20.19.0\n`)
    if (options.only && !suites.includes('redis'))
      exitWith(`--only needs the suite redis\n\n${USAGE}`)
    return () => onNode(given.length > 0 ? given : NODE_VERSIONS, suites)
  }
  if (what === 'redis' && given.length > 0) {
    const servers = given.map(serverOrExit)
    return () => onRedis(servers)
  }
  if (what === 'runtimes' && given.length === 0 && !options.only) return onRuntimes
  return exitWith(USAGE)
}

function exitWith(message) {
  process.stderr.write(message)
  process.exit(2)
}

async function onNode(versions, suites) {
  const binaries = versions.map((version) => ({ version, node: nodeBinary(version) }))
  printHead(['Node.js', ...suites.map((suite) => SUITES[suite].head)])
  for (const { version, node } of binaries) {
    const cells = [firstLine(node, ['--version']).replace('v', '')]
    for (const suite of suites) {
      cells.push(await tests(`node-${version}-${suite}`, SUITES[suite].args, { node }))
    }
    printRow(cells)
  }
}

/** The name and version that a program prints. */
function serverOrExit(program) {
  const { error, stdout } = spawnSync(program, ['--version'], { cwd: root, encoding: 'utf8' })
  if (error) exitWith(`${program} cannot be started: ${error.code}\n`)
  // Valkey 7.2 prints no name.
  const printed = /^(?:(\w+) )?server v=(\S+)/i.exec(stdout)
  if (printed === null)
    exitWith(`${program} --version does not print the version of a Redis server\n`)
  const [, name = 'Valkey', version] = printed
  return { program, name: `${name} ${version}` }
}

async function onRedis(servers) {
  printHead(['Server', SUITES.redis.head])
  for (const { program, name } of servers) {
    const env = { ...process.env, SPILLWAY_REDIS_SERVER: program }
    printRow([name, await tests(name.replace(' ', '-'), SUITES.redis.args, { env })])
  }
}

/** Runs tests, with their output in a log, and returns the counts. Ctrl-C ends this process. */
async function tests(log, args, { node = process.execPath, env = process.env }) {
  const output = openSync(join(LOGS, `${log}.log`), 'w')
  const built = { ...env, SPILLWAY_TEST_BUILT: '1' }
  const { count, exitCode } = await runVitest([...args, LONG_TIMEOUT], { output, node, env: built })
  closeSync(output)
  if (count === undefined) process.exit(exitCode)
  if (exitCode !== 0) {
    process.exitCode = 1
    process.stderr.write(`see ${join(LOGS, `${log}.log`)}\n`)
  }
  return closingLine(count)
}

async function onRuntimes() {
  const examples = readdirSync(join(root, 'examples/dist'))
    .filter((file) => file.endsWith('.js') && !NOT_ALONE.includes(file.slice(0, -'.js'.length)))
    .map((file) => ({ file, expected: runExample(process.execPath, [], file) }))
  const failed = examples.filter(({ expected }) => expected.status !== 0)
  if (failed.length > 0) {
    process.stderr.write(`fail on Node.js: ${failed.map(({ file }) => file).join(', ')}\n`)
    process.exit(1)
  }
  printHead(['Runtime', 'examples with the output of Node.js', 'others'])
  for (const { name, npmPackage, major, path, args } of RUNTIMES) {
    const program = npmBinary(npmPackage, major, path)
    const version = firstLine(program, ['--version']).match(/\d+\.\d+\.\d+/)?.[0]
    const others = examples
      .filter(({ file, expected }) => {
        const { status, text } = runExample(program, args, file)
        return status !== 0 || text !== expected.text
      })
      .map(({ file }) => file.replace('.js', ''))
    const same = `${examples.length - others.length} of ${examples.length}`
    printRow([`${name} ${version}`, same, others.join(', ')])
  }
}

/** `text`: what an example prints, without quotes and blanks, because runtimes print objects differently. */
function runExample(program, args, file) {
  const { status, stdout } = spawnSync(program, [...args, join('examples/dist', file)], {
    cwd: root,
    encoding: 'utf8',
    timeout: ENDS_WITHIN_MS,
    killSignal: 'SIGKILL',
  })
  return { status, text: stdout.replace(/[\s'"`,]/g, '') }
}

function firstLine(program, args) {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout.split('\n')[0]
}

function printHead(cells) {
  printRow(cells)
  process.stdout.write(`|${'---|'.repeat(cells.length)}\n`)
}

function printRow(cells) {
  process.stdout.write(`| ${cells.join(' | ')} |\n`)
}
