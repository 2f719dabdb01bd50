import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Name and installed version of a package, such as `cockatiel 4.0.0`. */
export function peerName(name: string): string {
  // `name/package.json` may be hidden by the package's `exports`. Its entry point is not, and the manifest is in a
  // folder above; nested manifests without a name are skipped.
  const entry = fileURLToPath(import.meta.resolve(name))
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    const manifest = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
    if (manifest?.name === name) return `${name} ${manifest.version}`
  }
  throw new Error(`${name}: no package.json above ${entry}`)
}
