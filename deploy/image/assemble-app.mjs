// node deploy/image/assemble-app.mjs FOLDER
//
// Builds the gateway and writes what it needs at run time to FOLDER: its packages as they are published, and the
// dependencies that package-lock.json names for production. The Dockerfile and the test of the image run it.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { root, run } from '../../scripts/run-command.mjs'
import { setupOrExit } from '../../scripts/setup.mjs'

const GATEWAY = '@spillway/gateway'
/** Type declarations and source maps are for developers. */
const DEVELOPERS_ONLY = /\.(d\.ts|map|tsbuildinfo)$/

const [folder] = process.argv.slice(2)
if (folder === undefined) fail('usage: node deploy/image/assemble-app.mjs FOLDER')
const app = resolve(folder)
if (existsSync(join(app, 'node_modules')))
  fail(`${app} has been assembled already; delete it first`)

await setupOrExit({ build: ['packages/gateway'], types: false })
const { workspaces } = manifestOf(root)
const packages = workspaces.flatMap((path) => {
  if (!path.endsWith('/*')) return [path]
  const parent = dirname(path)
  return readdirSync(join(root, parent)).map((name) => `${parent}/${name}`)
})
// npm ci compares all manifests with the lockfile.
copy(['package.json', 'package-lock.json', ...packages.map((path) => `${path}/package.json`)])
const install = ['ci', '--omit=dev', '--workspace', GATEWAY, '--ignore-scripts', '--no-audit']
const { code } = await run('npm', [...install, '--no-fund'], { cwd: app, stdio: ['ignore', 2, 2] })
if (code !== 0) fail(`npm ci failed with exit code ${code}; its message is above`)

for (const path of packages) {
  const { name, files = [] } = manifestOf(join(root, path))
  const isNeeded = existsSync(join(app, 'node_modules', name))
  if (isNeeded) copy(files.filter((file) => !file.startsWith('!')).map((file) => `${path}/${file}`))
  else rmSync(join(app, path), { recursive: true })
}
cpSync(new URL('./health-check.mjs', import.meta.url), join(app, 'health-check.mjs'))
process.stderr.write(`assembled ${app}\n`)

function manifestOf(path) {
  return JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
}

/** Paths are relative to the repository, and to the folder of the app. */
function copy(paths) {
  for (const path of paths) {
    mkdirSync(dirname(join(app, path)), { recursive: true })
    cpSync(join(root, path), join(app, path), {
      recursive: true,
      filter: (source) => !DEVELOPERS_ONLY.test(source),
    })
  }
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
