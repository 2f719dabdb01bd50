// One test has a real Prometheus scrape what we tell, and `promtool` check it. This sees to it that there is
// one, where that is possible; without it that test is skipped, and says so.

import { canInstall, installPackage, isOnPath } from './debian-package.mjs'

/** @param {(line: string) => void} say progress, one line at a time */
export async function ensurePrometheus(say) {
  if ((isOnPath('prometheus') && isOnPath('promtool')) || !canInstall()) return
  say('installing prometheus with apt-get (first run only) …')
  const problem = await installPackage('prometheus')
  if (problem !== undefined) say(`${problem} Tests with a real Prometheus will be skipped.`)
}
