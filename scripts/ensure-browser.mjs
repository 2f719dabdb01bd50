// Installs Chromium for the dashboard's tests where that is possible. Without it those tests are skipped with a note.

import { delimiter, join } from 'node:path'
import { canInstall, installPackage, isExecutable } from './debian-package.mjs'

/** Debian's Chromium without windows. Tests need a third less CPU time with it than with the others. */
const HEADLESS = 'chromium-headless-shell'
const NAMES = [HEADLESS, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Path of Chromium: SPILLWAY_CHROMIUM, or the first of these names on the PATH. */
export function findBrowser() {
  const given = process.env.SPILLWAY_CHROMIUM
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const files = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))
  return (given === undefined ? files : [given]).find(isExecutable)
}

/** @param {(line: string) => void} say progress, one line at a time */
export async function ensureBrowser(say) {
  if (findBrowser() !== undefined) return
  const loss = 'Tests of the dashboard page will be skipped.'
  if (!canInstall()) {
    say(`There is no Chromium on the PATH (SPILLWAY_CHROMIUM may name one). ${loss}`)
    return
  }
  // Older releases have no package of the headless Chromium.
  for (const name of [HEADLESS, 'chromium']) {
    say(`installing ${name} with apt-get (first run only) …`)
    const problem = await installPackage(name)
    if (problem === undefined) return
    say(problem)
  }
  say(loss)
}
