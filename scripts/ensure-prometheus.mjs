// Installs Prometheus where that is possible. One test scrapes the metrics with it and checks them with `promtool`.
// Without it that test is skipped with a note.

import { canInstall, installPackage, isOnPath } from './debian-package.mjs'

/** @param {(line: string) => void} say progress, one line at a time */
export async function ensurePrometheus(say) {
  if ((isOnPath('prometheus') && isOnPath('promtool')) || !canInstall()) return
  say('installing prometheus with apt-get (first run only) …')
  const problem = await installPackage('prometheus')
  if (problem !== undefined) say(`${problem} Tests with a real Prometheus will be skipped.`)
}
