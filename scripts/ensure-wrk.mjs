// The benches of the gateway load it with wrk; this sees to it that there is one to start. On a bare
// Debian machine it installs the package.

import { canInstall, installPackage, isOnPath } from './debian-package.mjs'

const HOW = `This suite needs wrk, and there is none on the PATH. Install it:
  Debian, Ubuntu   sudo apt-get install wrk
  macOS            brew install wrk`

/**
 * @param {(line: string) => void} say progress, one line at a time
 * @returns {Promise<string | undefined>} what is wrong, if there is no wrk now
 */
export async function ensureWrk(say) {
  if (isOnPath('wrk')) return undefined
  if (!canInstall()) return HOW
  say('installing wrk with apt-get (first run only) …')
  const problem = await installPackage('wrk')
  return problem === undefined ? undefined : `${problem}\n${HOW}`
}
