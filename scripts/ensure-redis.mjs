// The tests of shared state run against a real Redis server; this sees to it that there is one to
// start. On a bare Debian machine, which is what CI has, it installs the package.

import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { run } from './run-command.mjs'

const STDERR_ONLY = ['ignore', 2, 2]
// Debian's packages start their service when installed, unless this file says no.
const POLICY = '/usr/sbin/policy-rc.d'
const HOW = `The tests need redis-server (Redis 7 or Valkey), and there is none on the PATH. Install it:
  Debian, Ubuntu   sudo apt-get install redis-server
  macOS            brew install redis
or say where it is: SPILLWAY_REDIS_SERVER=/path/to/redis-server`

/**
 * @param {(line: string) => void} say progress, one line at a time
 * @returns {Promise<string | undefined>} what is wrong, if there is no server now
 */
export async function ensureRedis(say) {
  const given = process.env.SPILLWAY_REDIS_SERVER
  if (given !== undefined) {
    return isExecutable(given) ? undefined : `SPILLWAY_REDIS_SERVER=${given} cannot be executed.`
  }
  if (isOnPath('redis-server')) return undefined
  if (!canInstall()) return HOW
  say('installing redis-server with apt-get (first run only) …')
  const problem = await install()
  return problem === undefined ? undefined : `${problem}\n${HOW}`
}

function canInstall() {
  const isRoot = process.getuid?.() === 0
  return isRoot && existsSync('/etc/debian_version') && isOnPath('apt-get')
}

async function install() {
  const keepsServicesDown = !existsSync(POLICY)
  if (keepsServicesDown) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    for (const args of [
      ['update', '-qq'],
      ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'],
    ]) {
      const { code } = await run('env', ['DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args], {
        stdio: STDERR_ONLY,
      })
      if (code !== 0) return `apt-get ${args[0]} failed (exit code ${code}); its message is above.`
    }
    return undefined
  } finally {
    if (keepsServicesDown) rmSync(POLICY, { force: true })
  }
}

function isOnPath(command) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.some((folder) => folder !== '' && isExecutable(join(folder, command)))
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
