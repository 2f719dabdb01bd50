// One test runs a pod whose clock is an hour off, with the command `faketime`. This sees to it that
// there is one, where that is possible; without it that test is skipped, and says so.

import { canInstall, installPackage, isOnPath } from './debian-package.mjs'

/** @param {(line: string) => void} say progress, one line at a time */
export async function ensureFaketime(say) {
  if (isOnPath('faketime') || !canInstall()) return
  say('installing faketime with apt-get (first run only) …')
  const problem = await installPackage('faketime')
  if (problem !== undefined) say(`${problem} No pod's clock will be off in the tests.`)
}
