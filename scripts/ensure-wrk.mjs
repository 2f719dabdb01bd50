// Makes sure that wrk, the load generator of the benches, can be started. On a bare Debian machine it installs the
// package.

import { canInstall, installPackage, isOnPath } from './debian-package.mjs'

const HOW = `This suite needs wrk, and there is none on the PATH. Install it:
  Debian, Ubuntu   sudo apt-get install wrk
  macOS            brew install wrk`

/**
 * @param {(line: string) => void} say progress, one line at a time
 * @returns {Promise<string | undefined>} the problem, if wrk is not available
 */
export async function ensureWrk(say) {
  if (isOnPath('wrk')) return undefined
  if (!canInstall()) return HOW
  say('installing wrk with apt-get (first run only) …')
  const problem = await installPackage('wrk')
  return problem === undefined ? undefined : `${problem}\n${HOW}`
}
