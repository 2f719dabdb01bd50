// Vite plugin for test runs with a fresh build: an import of `packages/*/src/**.ts` loads the built module instead.
// Node then reads plain JavaScript, where Vitest would transform about 250 modules and send them to each test file's
// thread, which costs about a second of CPU time per file. Simulations also run a third faster, because Vitest turns
// every use of an import into a property access.

import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const SOURCE = /^(.*\/packages\/[^/]+)\/src\/(.*)\.[jt]s$/

/** For `server.deps.external`: the built modules are loaded by Node itself, also when they import each other. */
export const BUILT_MODULES = /\/packages\/[^/]+\/dist\/.*\.js$/

/**
 * The built file of an imported source file; undefined for other files, test files and sources that are not built.
 * @param {string} id what is imported
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

/**
 * Whether every package with a build has one that is complete and not older than any source.
 * @param {string} root
 */
export function isBuildFresh(root) {
  const packages = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name))
  const built = packages.filter((folder) => existsSync(join(folder, 'dist')))
  return built.length > 0 && built.every(isPackageFresh)
}

function isPackageFresh(folder) {
  const stamp = join(folder, 'dist/.tsbuildinfo')
  if (!existsSync(stamp)) return false
  const builtMs = statSync(stamp).mtimeMs
  const sources = readdirSync(join(folder, 'src'), { recursive: true })
    .map((path) => join(folder, 'src', path))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  return sources.every(
    (path) => statSync(path).mtimeMs <= builtMs && builtModule(path, undefined) !== undefined,
  )
}
