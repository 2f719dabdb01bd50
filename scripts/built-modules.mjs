// Vite plugin for test runs with a fresh build: an import of `packages/*/src/**.ts` loads the built module instead.
// Node then reads plain JavaScript, where Vitest would transform about 250 modules and send them to each test file's
// thread, which costs about a second of CPU time per file. Simulations also run a third faster, because Vitest turns
// every use of an import into a property access.

import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

const SOURCE = /^(.*\/packages\/[^/]+)\/src\/(.*)\.[jt]s$/

/** For `server.deps.external`: Node loads the built modules, also when they import each other. */
export const BUILT_MODULES = /\/packages\/[^/]+\/dist\/.*\.js$/

/**
 * The built file of an imported source file; undefined for other files, test files and sources that are not built.
 * @param {string} id the imported specifier
 * @param {string | undefined} importer the file with the import
 */
export function builtModule(id, importer) {
  const isRelative = id.startsWith('./') || id.startsWith('../')
  if (isRelative && importer === undefined) return undefined
  const source = SOURCE.exec(isRelative ? resolve(dirname(importer), id) : id)
  if (source === null) return undefined
  const [, folder, path] = source
  const built = `${folder}/dist/${path}.js`
  return existsSync(`${folder}/src/${path}.ts`) && existsSync(built) ? built : undefined
}

/** @returns {import('vitest/config').Plugin} */
export function builtModules() {
  return {
    name: 'built-modules',
    enforce: 'pre',
    resolveId: { order: 'pre', handler: (id, importer) => builtModule(id, importer) },
  }
}
