// Installs programs that the tests need, from Debian packages, on a bare Debian machine such as CI.

import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { run } from './run-command.mjs'

const STDERR_ONLY = ['ignore', 2, 2]
// Debian's packages start their service when installed, unless this file forbids it.
const POLICY = '/usr/sbin/policy-rc.d'

export function canInstall() {
  const isRoot = process.getuid?.() === 0
  return isRoot && existsSync('/etc/debian_version') && isOnPath('apt-get')
}

/** @returns {Promise<string | undefined>} the problem, if there was one */
export async function installPackage(name) {
  const keepsServicesDown = !existsSync(POLICY)
  if (keepsServicesDown) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    for (const args of [
      ['update', '-qq'],
      ['install', '-y', '-qq', '--no-install-recommends', name],
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

export function isOnPath(command) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.some((folder) => folder !== '' && isExecutable(join(folder, command)))
}

export function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
