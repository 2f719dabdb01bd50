import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A package and the version of it that is installed, such as `cockatiel 4.0.0`. */
export function peerName(name: string): string {
  // `name/package.json` cannot be asked for where the package's `exports` hide it. Its entry point
  // can, and the manifest lies in a folder above; nested ones without a name are passed by.
  const entry = fileURLToPath(import.meta.resolve(name))
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    const manifest = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
    if (manifest?.name === name) return `${name} ${manifest.version}`
  }
  throw new Error(`${name}: no package.json above ${entry}`)
}
