// The dashboard's tests look at it in a real Chromium. This sees to it that there is one, where that is
// possible; without it those tests are skipped, and say so.

import { canInstall, installPackage, isExecutable, isOnPath } from './debian-package.mjs'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** What to start: a name on the PATH, or the file SPILLWAY_CHROMIUM names. */
export function findBrowser() {
  const given = process.env.SPILLWAY_CHROMIUM
  if (given !== undefined) return isExecutable(given) ? given : undefined
  return NAMES.find(isOnPath)
}

/** @param {(line: string) => void} say progress, one line at a time */
export async function ensureBrowser(say) {
  if (findBrowser() !== undefined) return
  const loss = 'Nobody will look at the dashboard in the tests.'
  if (!canInstall()) {
    say(`There is no Chromium on the PATH (SPILLWAY_CHROMIUM may name one). ${loss}`)
    return
  }
  say('installing chromium with apt-get (first run only) …')
  const problem = await installPackage('chromium')
  if (problem !== undefined) say(`${problem} ${loss}`)
}
