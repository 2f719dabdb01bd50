// Installs the command `faketime` where that is possible. It runs a pod with a clock that is an hour off. Without it
// that test is skipped with a note.

import { canInstall, installPackage, isOnPath } from './debian-package.mjs'

/** @param {(line: string) => void} say progress, one line at a time */
export async function ensureFaketime(say) {
  if (isOnPath('faketime') || !canInstall()) return
  say('installing faketime with apt-get (first run only) …')
  const problem = await installPackage('faketime')
  if (problem !== undefined) say(`${problem} No pod's clock will be off in the tests.`)
}
