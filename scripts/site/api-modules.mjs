// The entries of the published packages: modules of the TypeScript API in docs/reference/api/.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGES = ['spillway', 'gateway', 'dashboard', 'mock-vendor', 'simulator']
const packages = fileURLToPath(new URL('../../packages/', import.meta.url))

/** Every import path with its declaration file and the name of its page, such as `spillway/local` and `spillway-local`. */
export function apiModules() {
  return PACKAGES.flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(packages, folder, 'package.json'), 'utf8'))
    return Object.entries(manifest.exports)
      .filter(([subpath, target]) => typeof target === 'object' && subpath !== './internal')
      .map(([subpath, { types }]) => {
        const name = subpath.replace('.', manifest.name)
        return { name, page: pageOfModule(name), file: join(packages, folder, types) }
      })
  })
}

export function pageOfModule(name) {
  return name.replace('@', '').replaceAll('/', '-')
}
