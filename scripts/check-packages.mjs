// npm run check -- packages: packs every package, installs the tarballs in an empty folder and uses them there, with
// the oldest supported Node and the newest of each later line. Nothing may print a warning.
//
//   node scripts/check-packages.mjs [MAJOR…]     only these versions of Node

import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PACKAGES, packageProblems } from './package-rules.mjs'
import { nodeBinary, npmCli } from './platforms/npm-binary.mjs'
import { isMain, root, SKIPPED } from './run-command.mjs'
import { setupOrExit } from './setup.mjs'

/** The oldest that `engines` allows, and the newest of the later lines. */
const NODE_VERSIONS = ['20.19.0', '22', '24', '26']
/** Optional peers of the library, whose types its entries use. */
const PEERS = [
  '@nestjs/common@12',
  '@nestjs/core@12',
  '@opentelemetry/api@1',
  '@types/express@5',
  'axios@1',
  'express@5',
  'fastify@5',
  'hono@4',
  'ioredis@5',
  'piscina@5',
  'prom-client@15',
  'reflect-metadata@0.2',
  'rxjs@7',
]
const FIXTURES = fileURLToPath(new URL('./packed', import.meta.url))
const NPM_FLAGS = ['--no-audit', '--no-fund', '--prefer-offline', '--no-update-notifier']

/** About the settings of npm on this machine, not about the packages. */
const ABOUT_NPM_SETTINGS =
  /^npm warn Unknown (?:builtin|cli|env|global|project|user) config .*\n/gim

class Failure extends Error {}

if (isMain(import.meta.url)) await main(process.argv.slice(2))

async function main(majors) {
  await setupOrExit({ quiet: true })
  const folder = mkdtempSync(join(tmpdir(), 'packages-'))
  try {
    const problems = packageProblems(root)
    if (problems.length > 0) throw new Failure(problems.join('\n'))
    if (!(await isRegistryReachable())) {
      print('the npm registry is not reachable, so nothing can be installed')
      process.exitCode = SKIPPED
      return
    }
    const tarballs = await packAll(folder)
    const chosen = NODE_VERSIONS.filter(
      (version) => majors.length === 0 || majors.includes(version.split('.')[0]),
    )
    for (const version of chosen) await checkWith(version, tarballs, folder)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    print(error.message)
    process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Packs every package into `folder` and prints how large each is. */
async function packAll(folder) {
  const tarballs = []
  for (const name of PACKAGES) {
    const args = ['pack', '--json', '--pack-destination', folder]
    const { stdout } = await npm(args, { cwd: join(root, 'packages', name) })
    const [packed] = [JSON.parse(stdout)]
      .flat()
      .flatMap((each) => (each.filename ? each : Object.values(each)))
    tarballs.push(join(folder, basename(packed.filename)))
    const kilobytes = (bytes) => `${Math.round(bytes / 1_000)} kB`
    print(
      `${packed.name}: ${packed.entryCount} files, ${kilobytes(packed.size)} packed, ${kilobytes(packed.unpackedSize)} unpacked`,
    )
  }
  return tarballs
}

async function checkWith(version, tarballs, folder) {
  const node = nodeBinary(version)
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` }
  delete env.NODE_OPTIONS
  const using = (cwd) => ({ node, env, cwd })
  const { stdout } = await run(node, ['--version'], { env })
  const label = `Node ${stdout.trim()}`

  // The library alone: no peer is installed, so no entry may need one to be imported.
  const alone = emptyProject(folder, `alone-${version}`)
  const library = tarballs.filter((file) => basename(file).startsWith('spillway-0'))
  await silently(
    `${label}: install spillway`,
    npm(['install', ...NPM_FLAGS, ...library], using(alone)),
  )
  await silently(`${label}: import spillway`, run(node, ['imports.mjs'], using(alone)))

  const all = emptyProject(folder, `all-${version}`)
  await silently(
    `${label}: install every package`,
    npm(['install', ...NPM_FLAGS, ...tarballs], using(all)),
  )
  await silently(`${label}: import every entry`, run(node, ['imports.mjs'], using(all)))
  await silently(`${label}: run a gateway`, run(node, ['gateway.mjs'], using(all)))
  for (const args of [['--version'], ['--help'], ['check', 'spillway.yaml']]) {
    const npx = join(dirname(npmCli()), 'npx-cli.js')
    const command = ['-p', '@spillway/gateway', 'spillway', ...args]
    const running = expectSuccess(run(node, [npx, ...command], using(all)))
    await silently(`${label}: npx ${command.join(' ')}`, running)
  }

  const major = version.split('.')[0]
  const types = ['typescript@6', `@types/node@${major}`, ...PEERS]
  // Some peers require a newer Node; the application that installs them decides about that.
  await npm(['install', ...NPM_FLAGS, '--loglevel=error', ...types], using(all))
  const tsc = join(all, 'node_modules/typescript/bin/tsc')
  await silently(`${label}: types`, run(node, [tsc, '-p', 'tsconfig.json'], using(all)))
  print(`${label}: installed, imported, type-checked and run without a warning`)
}

function emptyProject(folder, name) {
  const project = join(folder, name)
  cpSync(FIXTURES, project, { recursive: true })
  // Written as fixtures that the repository's own checks do not take for sources.
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n')
  return project
}

async function isRegistryReachable() {
  const { code } = await start(process.execPath, [npmCli(), 'view', 'typescript', 'version'], {})
  return code === 0
}

function npm(args, { node = process.execPath, ...options }) {
  return expectSuccess(run(node, [npmCli(), ...args], options))
}

async function expectSuccess(running) {
  const result = await running
  if (result.code !== 0)
    throw new Failure(`${result.command}: exit code ${result.code}\n${result.output}`)
  return result
}

/** Fails if the command fails or prints something to stderr or a warning to stdout. */
async function silently(what, running) {
  const { stdout, stderr: printed, command } = await expectSuccess(running)
  const stderr = printed.replaceAll(ABOUT_NPM_SETTINGS, '')
  if (stderr.trim() !== '' || /\bwarn(ing)?\b/i.test(stdout)) {
    throw new Failure(`${what}: should print no warning (${command})\n${stderr}${stdout}`)
  }
}

function run(command, args, options) {
  return start(command, args, options)
}

function start(command, args, { cwd = root, env = process.env }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const result = {
      command: [basename(command), ...args].join(' '),
      stdout: '',
      stderr: '',
      output: '',
    }
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', (chunk) => {
        result[stream] += chunk
        result.output += chunk
      })
    }
    child.on('error', (error) => resolve({ ...result, code: 127, output: error.message }))
    child.on('close', (code) => resolve({ ...result, code: code ?? 1 }))
  })
}

function print(line) {
  process.stdout.write(`${line}\n`)
}
